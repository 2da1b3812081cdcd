#include "cli/job_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "cli/field_texts.h"
#include "cli/model_text.h"
#include "cli/module_names.h"
#include "planner/cost/gathers_once.h"
#include "planner/cost/legality.h"
#include "planner/cost/loss_rows.h"
#include "planner/cost/recompute_modules.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/search/default_batch.h"
#include "planner/search/search.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/curve_sources.h"
#include "planner/spec/format.h"
#include "planner/spec/names.h"
#include "planner/spec/nearest.h"
#include "planner/spec/number.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/reader.h"
#include "planner/spec/utf8.h"

namespace shardwise::cli {
namespace {

std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

template <std::size_t kCount>
void add_fields(CLI::App& verb, const std::array<FieldText, kCount>& fields,
                std::map<std::string, std::string>& texts) {
  for (const FieldText& d : fields) {
    CLI::Option* option = verb.add_option(flag_of(d.field), texts[d.field], d.text)->group(d.group);
    if (d.field == std::string_view("recompute_operations")) {
      verb.add_option(flag_of(kModulesField), texts[kModulesField],
                      "The same by Megatron-Core's modules")
          ->group(d.group)
          ->type_name("MODULE,…");
    }
    if (*d.value == '\0') {
      // A switch: bare it is true, --flag=false turns it off.
      option->expected(0, 1)->default_str("true")->type_name("");
    } else {
      option->type_name(d.value);
    }
  }
}

Diagnostic wrong(std::string flag, std::string message, std::string hint = {}) {
  return {"command line", 0, 0, std::move(flag), std::move(message), std::move(hint)};
}

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
      for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        JsonValue name;
        name.kind = JsonValue::Kind::string;
        name.string = text.substr(at, end - at);
        value.elements.push_back(name);
        at = end + 1;
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
  problems.push_back(wrong("--gpus", problem));
  return std::nullopt;
}

constexpr const char* kUsualEngine = "megatron_ddp";

std::vector<std::string> engine_list() { return engine_names(); }

/// What is asked for to save memory and saves none, with what would.
void note_idle(Subject& subject, const Layout& layout) {
  for (const IdleRecompute& each :
       idle_recompute(subject.model, subject.job, subject.engine, layout)) {
    subject.assumptions.push_back(
        {"recompute.idle",
         fmt::format("{} runs again as asked, and saves no memory{}", each.operation,
                     each.partner.empty() ? "" : "; with " + each.partner + " it does"),
         "docs/memory.md, Activations"});
  }
}

const EngineProfile* find_engine_or_say(const std::string& name, Diagnostics& problems) {
  const EngineProfile* engine = find_engine(name);
  if (engine != nullptr) return engine;
  const auto near = nearest(name, engine_list());
  problems.push_back(wrong("--engine", fmt::format("'{}' is not an engine", name),
                           near ? fmt::format("did you mean {}?", *near)
                                : fmt::format("use {}", fmt::join(engine_list(), ", "))));
  return nullptr;
}

/// What people train in on this GPU.
DType usual_precision(const GpuSpec& gpu) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    if (gpu.peak(dtype).value() > 0) return dtype;
  }
  return DType::fp32;
}

std::vector<std::string> given(const std::map<std::string, std::string>& texts) {
  std::vector<std::string> flags;
  for (const auto& [field, text] : texts) {
    if (!text.empty()) flags.push_back(flag_of(field));
  }
  return flags;
}

}  // namespace

void note_curves(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                 std::vector<Assumption>& assumptions) {
  std::optional<Assumption> note =
      curves_assumption(cluster, {job.precision, model.num_experts > 0});
  if (note) assumptions.push_back(*std::move(note));
}

std::vector<std::string> given_flags(const JobFlags& flags) {
  std::vector<std::string> all = given(flags.texts);
  const std::map<std::string, std::string> named = {{"model", flags.model},
                                                    {"cluster", flags.cluster},
                                                    {"gpus", flags.gpus},
                                                    {"engine", flags.engine}};
  const std::vector<std::string> others = given(named);
  all.insert(all.begin(), others.begin(), others.end());
  return all;
}

std::vector<std::string> given_flags(const LayoutFlags& flags) { return given(flags.texts); }

void add_job_flags(CLI::App& verb, JobFlags& flags, JobScope scope) {
  verb.add_option("--model", flags.model, "Catalogue name, or a Hugging Face config.json")
      ->required()
      ->type_name("NAME|FILE")
      ->group(kJobGroup);
  if (scope == JobScope::one_cluster) {
    verb.add_option("--cluster", flags.cluster, "Catalogue name, or a cluster file")
        ->required()
        ->type_name("NAME|FILE")
        ->group(kJobGroup);
    verb.add_option("--gpus", flags.gpus, "GPUs to train on [one node]")
        ->type_name("N")
        ->group(kJobGroup);
  }
  verb.add_option("--engine", flags.engine,
                  fmt::format("{} [megatron_ddp]", fmt::join(engine_list(), ", ")))
      ->type_name("NAME")
      ->group(kJobGroup);
  add_fields(verb, kJobTexts, flags.texts);
}

void add_layout_flags(CLI::App& verb, LayoutFlags& flags) {
  add_fields(verb, kLayoutTexts, flags.texts);
}

Result<Subject> read_subject(const JobFlags& flags) {
  Diagnostics problems;
  Subject subject;
  std::map<std::string, std::string> texts = flags.texts;
  const bool by_module = names_modules(texts);
  subject.job = read_job(texts, problems);
  const EngineProfile* engine =
      find_engine_or_say(flags.engine.empty() ? std::string(kUsualEngine) : flags.engine, problems);
  if (engine != nullptr) subject.engine = *engine;

  Result<ReadModel> model = load_model_and_keys(flags.model);
  if (model) {
    subject.assumptions = absent_keys_assumption(model->model, model->absent_keys);
    subject.model = std::move(model->model);
    expand_modules(subject, problems);
    append(problems, check_operations(subject.model, subject.job));
    if (by_module) name_modules_flag(problems);
  } else {
    append(problems, model.problems());
  }
  Result<ClusterSpec> cluster = find_cluster(flags.cluster);
  if (cluster) {
    subject.cluster = *std::move(cluster);
    subject.gpus_given = !flags.gpus.empty();
    std::int64_t gpus = subject.cluster.gpus_per_node;
    if (subject.gpus_given) gpus = read_gpus(flags.gpus, problems).value_or(gpus);
    Result<ClusterSpec> sized = with_gpus(subject.cluster, gpus);
    if (sized) {
      subject.cluster = *std::move(sized);
    } else {
      append(problems, sized.problems());
    }
    const auto open = [&](const char* field) {
      const auto at = flags.texts.find(field);
      return at == flags.texts.end() || at->second.empty();
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

Result<std::vector<const EngineProfile*>> read_engines(const std::string& names) {
  Diagnostics problems;
  std::vector<const EngineProfile*> engines;
  std::vector<std::string> asked;
  if (names == "all") {
    asked = engine_list();
  } else {
    for (std::size_t at = 0; at <= names.size();) {
      const std::size_t end = std::min(names.find(',', at), names.size());
      asked.push_back(names.substr(at, end - at));
      at = end + 1;
    }
    if (names.empty()) asked = {kUsualEngine};
  }
  for (const std::string& name : asked) {
    const EngineProfile* engine = find_engine_or_say(name, problems);
    const bool twice = std::find(engines.begin(), engines.end(), engine) != engines.end();
    if (engine != nullptr && !twice) engines.push_back(engine);
  }
  if (!problems.empty()) return problems;
  return engines;
}

Result<Layout> read_layout(const LayoutFlags& flags, Subject& subject, BatchWhenOpen batch) {
  Diagnostics problems;
  const auto given = [&](const char* field) {
    const auto at = flags.texts.find(field);
    return at != flags.texts.end() && !at->second.empty();
  };
  const EngineProfile& engine = subject.engine;
  Layout layout;
  layout.zero_stage = static_cast<std::int8_t>(engine.zero_stages.back());
  layout.fp32_gradients =
      engine.fp32_gradients_default && !subject.job.reduce_scatter_with_fp32_accumulation;
  layout.reduce_every_microbatch = engine.reduce_every_microbatch;
  for (const auto& [field, text] : flags.texts) {
    if (text.empty()) continue;
    const std::string problem = set_field(layout, field, text);
    if (problem.empty()) continue;
    const std::string prefix = field + ": ";
    problems.push_back(wrong(
        flag_of(field), problem.starts_with(prefix) ? problem.substr(prefix.size()) : problem));
  }
  if (!problems.empty()) return problems;

  if (!given("sequence_parallel")) layout.sequence_parallel = layout.tp > 1;
  if (!given("etp") && subject.model.num_experts > 0) layout.etp = layout.tp;
  const double inner = static_cast<double>(layout.tp) * layout.cp * layout.pp * layout.dp_replicate;
  if (!subject.gpus_given) {
    // As many GPUs as the degrees multiply to; the fewest whole nodes that they divide when the
    // data-parallel degree is open.
    const std::int64_t node = subject.cluster.gpus_per_node;
    const auto asked = static_cast<std::int64_t>(
        std::min(inner * (given("dp_shard") ? layout.dp_shard : 1), 1e15));
    const bool whole_nodes = !given("dp_shard") && asked <= kMostGpus;
    Result<ClusterSpec> sized =
        with_gpus(subject.cluster, whole_nodes ? std::lcm(asked, node) : asked);
    if (!sized) return sized.problems();
    subject.cluster = *std::move(sized);
    if (subject.cluster.gpus != node) {
      subject.assumptions.push_back(
          {"gpus",
           fmt::format("{} GPUs, {} (--gpus)", format_count(subject.cluster.gpus),
                       given("dp_shard") ? "the product of the degrees"
                                         : "the fewest whole nodes that the degrees divide"),
           "docs/search.md"});
    }
  }
  if (!given("dp_shard")) {
    const double share = static_cast<double>(subject.cluster.gpus) / inner;
    layout.dp_shard = static_cast<std::int32_t>(std::max(1.0, share));
  }
  JobSpec& job = subject.job;
  const bool counts = inner >= 1 && layout.dp_shard >= 1 && layout.micro_batch_size >= 1 &&
                      inner * layout.dp_shard * layout.micro_batch_size < 1e15;
  if (!counts) {
    // check_layout says which degree is wrong.
  } else if (job.global_batch_size == 0 && batch == BatchWhenOpen::usual) {
    job.global_batch_size = default_batch(subject.cluster, job, layout);
    subject.assumptions.push_back(batch_assumption(subject.cluster, job));
  } else {
    job.global_batch_size = job.batch_for(layout.dp(), layout.micro_batch_size);
  }
  Layout once = layout;
  gather_once(once, engine, subject.job);
  if (!given("reshard_after_forward")) layout.reshard_after_forward = once.reshard_after_forward;
  if (!given("reduce_every_microbatch")) {
    layout.reduce_every_microbatch = once.reduce_every_microbatch;
  }
  if (subject.recompute_core_attention) {
    if (!given("recompute")) layout.recompute = Recompute::selective;
    if (layout.recompute != Recompute::selective) {
      return Diagnostics{
          wrong("--recompute-modules",
                fmt::format("core_attn, but --recompute is {}", name_of(layout.recompute)),
                "leave out one of the two")};
    }
  }
  Diagnostics illegal = check_layout(subject.model, subject.cluster, subject.job, engine, layout);
  if (!illegal.empty()) return illegal;
  subject.job = decided_job(subject.model, subject.cluster, subject.job, engine, layout,
                            usable_memory(subject.cluster, subject.job, Bytes(0)));
  note_idle(subject, layout);
  return layout;
}

}  // namespace shardwise::cli
