#include "tests/planner/engines/goldens.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/check.h"

namespace shardwise::test {
namespace {

constexpr const char* kFolder = "tests/golden/engines";
constexpr std::int64_t kMost = std::int64_t{1} << 60;

/// Of an engine's configuration, what a case may set.
constexpr std::pair<const char*, std::int64_t EngineProfile::*> kEngineSizes[] = {
    {"bucket_elements", &EngineProfile::bucket_elements},
    {"reduce_buffer_elements", &EngineProfile::reduce_buffer_elements},
    {"sub_group_elements", &EngineProfile::sub_group_elements},
    {"gather_queue_elements", &EngineProfile::gather_queue_elements},
    {"prefetch_elements", &EngineProfile::prefetch_elements},
};

/// The engine of a file: "fsdp2" of fsdp2.json, and of fsdp2.parts.json.
std::string engine_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name.substr(0, name.find('.'));
}

/// The numbers of a list in which [times, [numbers]] is a run.
std::vector<std::int64_t> expanded(const JsonValue& list) {
  std::vector<std::int64_t> numbers;
  for (const JsonValue& each : list.elements) {
    if (each.kind == JsonValue::Kind::integer) {
      numbers.push_back(each.integer);
      continue;
    }
    const std::vector<std::int64_t> run = expanded(each.elements.at(1));
    for (std::int64_t i = 0; i < each.elements.at(0).integer; ++i) {
      numbers.insert(numbers.end(), run.begin(), run.end());
    }
  }
  return numbers;
}

class GoldensReader {
 public:
  explicit GoldensReader(const std::filesystem::path& path) : file_(path.string()) {
    Result<JsonValue> read = read_json(path);
    SHARDWISE_CHECK(read.ok(), read.ok() ? "" : to_string(read.problems()));
    root_ = *std::move(read);
    goldens_.engine = engine_of(path);
  }

  EngineGoldens take() {
    ObjectReader root(root_, file_, "", problems_);
    root.string("made_by");
    read_version(*root.object("versions"));
    models_ = root.object("models");
    const JsonValue* cases = root.array("cases");
    for (std::size_t i = 0; i < cases->elements.size(); ++i) {
      ObjectReader one = root.nested("cases", i, cases->elements[i]);
      goldens_.cases.push_back(read_case(one));
    }
    root.reject_unknown();
    SHARDWISE_CHECK(problems_.empty(), to_string(problems_));
    return std::move(goldens_);
  }

 private:
  void read_version(const JsonValue& versions) {
    for (const auto& [key, value] : versions.members) {
      if (!goldens_.version.empty()) goldens_.version += ", ";
      goldens_.version += key + " " + value.string;
    }
  }

  ModelSpec model_of(const std::string& name) {
    const JsonValue* config = models_->find(name);
    SHARDWISE_CHECK(config != nullptr, name);
    Result<ModelSpec> model = read_model(*config, file_, name);
    SHARDWISE_CHECK(model.ok(), model.ok() ? "" : to_string(model.problems()));
    return *std::move(model);
  }

  EngineCase read_case(ObjectReader& one) {
    EngineCase golden;
    golden.name = one.string("name");
    golden.stage = static_cast<std::int32_t>(one.integer_or("stage", 0, 0, 1024));
    Plan& plan = golden.plan;
    plan.engine = *find_engine(goldens_.engine);
    if (const JsonValue* sizes = one.object("engine", false)) {
      ObjectReader engine = one.nested("engine", *sizes);
      for (const auto& [key, field] : kEngineSizes) {
        plan.engine.*field = engine.integer_or(key, plan.engine.*field, 0, kMost);
      }
      plan.engine.keeps_last_reduction = engine.boolean_or("keeps_last_reduction", false);
      engine.reject_unknown();
    }
    plan.model = model_of(one.string("model"));
    plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
    plan.job.sequence_length = 256;
    ObjectReader layout = one.nested("layout", *one.object("layout"));
    read_fields(layout, plan.layout);
    if (const JsonValue* found = one.object("job", false)) {
      ObjectReader job = one.nested("job", *found);
      read_fields(job, plan.job);
    }
    const std::int64_t microbatches = one.integer_or("micro_batches", 1, 1, 1 << 20);
    plan.job.global_batch_size = plan.layout.dp() * plan.layout.micro_batch_size * microbatches;
    plan.cluster = *with_gpus(*find_cluster("dgx-h100"), plan.layout.world());
    if (const JsonValue* ledger = one.object("ledger", false)) read_ledger(golden, *ledger);
    if (const JsonValue* lists = one.object("lists", false)) {
      for (const auto& [key, list] : lists->members) golden.lists.emplace_back(key, expanded(list));
    }
    one.reject_unknown();
    return golden;
  }

  static void read_ledger(EngineCase& golden, const JsonValue& phases) {
    for (const auto& [phase, figures] : phases.members) {
      for (const auto& [key, value] : figures.members) {
        golden.ledger.emplace_back(fmt::format("{}.{}", phase, key), value.integer);
      }
    }
  }

  std::string file_;
  JsonValue root_;
  const JsonValue* models_ = nullptr;
  Diagnostics problems_;
  EngineGoldens goldens_;
};

}  // namespace

std::vector<EngineGoldens> engine_goldens() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".json" && find_engine(engine_of(path)) != nullptr) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<EngineGoldens> goldens;
  for (const std::filesystem::path& path : files) {
    EngineGoldens file = engine_goldens(path);
    if (goldens.empty() || goldens.back().engine != file.engine) {
      goldens.push_back(std::move(file));
      continue;
    }
    SHARDWISE_CHECK(goldens.back().version == file.version, path.string() + ": another version");
    std::ranges::move(file.cases, std::back_inserter(goldens.back().cases));
  }
  return goldens;
}

EngineGoldens engine_goldens(const std::filesystem::path& file) {
  const std::string engine = engine_of(file);
  SHARDWISE_CHECK(find_engine(engine) != nullptr, engine + ".json: no engine has this name");
  return GoldensReader(file).take();
}

}  // namespace shardwise::test
