#include "planner/question/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "planner/cost/legality.h"
#include "planner/cost/loss_rows.h"
#include "planner/model/hf_config.h"
#include "planner/question/asked_engines.h"
#include "planner/question/field_values.h"
#include "planner/question/flags.h"
#include "planner/question/module_names.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/curve_sources.h"
#include "planner/spec/number.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/reader.h"

namespace shardwise {
namespace {

void append(Diagnostics& to, const Diagnostics& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// The job's fields through the reader that plan.json goes through, so that names and limits are
/// the same.
JobSpec read_job(const std::map<std::string, std::string>& texts, Diagnostics& problems) {
  JsonValue object;
  object.kind = JsonValue::Kind::object;
  for (const auto& [field, text] : texts) {
    if (text.empty()) continue;
    JsonValue value;
    value.kind = JsonValue::Kind::string;
    value.string = text;
    if (field == "recompute_operations") {
      value.kind = JsonValue::Kind::array;
      for (const std::string& part : split_at(text, ',')) {
        JsonValue name;
        name.kind = JsonValue::Kind::string;
        name.string = part;
        value.elements.push_back(name);
      }
    } else if (text == "true" || text == "false") {
      value.kind = JsonValue::Kind::boolean;
      value.boolean = text == "true";
    } else {
      if (const std::optional<std::int64_t> integer = parse_integer(text)) {
        value.kind = JsonValue::Kind::integer;
        value.integer = *integer;
        value.number = static_cast<double>(*integer);
      } else if (const std::optional<double> number = parse_number(text)) {
        value.kind = JsonValue::Kind::number;
        value.number = *number;
      }
    }
    object.members.push_back({field, value});
  }
  Diagnostics found;
  ObjectReader reader(object, "command line", "", found);
  JobSpec job;
  read_fields(reader, job);
  for (Diagnostic& each : found) {
    each.line = 0;
    if (!each.path.empty() && each.path.front() == '/') each.path = flag_of(each.path.substr(1));
  }
  append(problems, found);
  return job;
}

/// A number of GPUs, or nothing and a problem.
std::optional<std::int64_t> read_gpus(const std::string& text, Diagnostics& problems) {
  std::int64_t gpus = 0;
  const std::string problem = read_integer(text, 1, kMostGpus, gpus);
  if (problem.empty()) return gpus;
  problems.push_back(wrong_flag("--gpus", problem));
  return std::nullopt;
}

/// What people train in on this GPU.
DType usual_precision(const GpuSpec& gpu) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    if (gpu.peak(dtype).value() > 0) return dtype;
  }
  return DType::fp32;
}

/// States what was taken for the keys that a model's configuration lacks; empty where it lacks
/// none.
std::vector<Assumption> absent_keys_assumption(const ModelSpec& model,
                                               const std::vector<std::string>& absent_keys) {
  if (absent_keys.empty()) return {};
  return {{"model.absent_keys",
           fmt::format("keys that the configuration of {} lacks, as transformers takes them: {}",
                       model.name, fmt::join(absent_keys, ", ")),
           "docs/models.md, Families"}};
}

}  // namespace

void note_curves(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                 std::vector<Assumption>& assumptions) {
  std::optional<Assumption> note =
      curves_assumption(cluster, {job.precision, model.num_experts > 0});
  if (note) assumptions.push_back(*std::move(note));
}

std::vector<std::string> given_flags(const AskedJob& asked) {
  std::vector<std::string> all = flags_of(asked.texts);
  const std::map<std::string, std::string> named = {{"model", asked.model},
                                                    {"cluster", asked.cluster},
                                                    {"gpus", asked.gpus},
                                                    {"engine", asked.engine}};
  const std::vector<std::string> others = flags_of(named);
  all.insert(all.begin(), others.begin(), others.end());
  return all;
}

Result<Subject> read_subject(const AskedJob& asked) {
  Diagnostics problems;
  Subject subject;
  std::map<std::string, std::string> texts = asked.texts;
  const bool by_module = names_modules(texts);
  subject.job = read_job(texts, problems);
  const EngineProfile* engine =
      read_engine(asked.engine.empty() ? kUsualEngine : asked.engine, problems);
  if (engine != nullptr) subject.engine = *engine;

  Result<ReadModel> model = load_model_and_keys(asked.model);
  if (model) {
    subject.assumptions = absent_keys_assumption(model->model, model->absent_keys);
    subject.model = std::move(model->model);
    expand_modules(subject, problems);
    append(problems, check_operations(subject.model, subject.job));
    if (by_module) name_modules_flag(problems);
  } else {
    append(problems, model.problems());
  }
  Result<ClusterSpec> cluster = find_cluster(asked.cluster);
  if (cluster) {
    subject.cluster = *std::move(cluster);
    subject.gpus_given = !asked.gpus.empty();
    std::int64_t gpus = subject.cluster.gpus_per_node;
    if (subject.gpus_given) gpus = read_gpus(asked.gpus, problems).value_or(gpus);
    Result<ClusterSpec> sized = with_gpus(subject.cluster, gpus);
    if (sized) {
      subject.cluster = *std::move(sized);
    } else {
      append(problems, sized.problems());
    }
    const auto open = [&](const char* field) {
      const auto at = asked.texts.find(field);
      return at == asked.texts.end() || at->second.empty();
    };
    if (open("precision")) subject.job.precision = usual_precision(subject.cluster.gpu);
    if (open("loss_chunk_rows")) {
      subject.job.loss_chunk_rows = usual_loss_chunk_rows(subject.cluster.gpu);
    }
    append(problems, check_precision(subject.cluster, subject.job));
  } else {
    append(problems, cluster.problems());
  }
  if (!problems.empty()) return problems;
  return subject;
}

}  // namespace shardwise
