#include "planner/question/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "planner/cost/software/usual_kernels.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/question/adapter_flags.h"
#include "planner/question/asked_engines.h"
#include "planner/question/field_values.h"
#include "planner/question/flags.h"
#include "planner/question/module_names.h"
#include "planner/question/named_gpu.h"
#include "planner/question/plan_texts.h"
#include "planner/question/power_flag.h"
#include "planner/question/stack_flag.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/report/curve_sources.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

void append_problems(Diagnostics& to, const Diagnostics& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// A number of GPUs, or nothing and a problem.
std::optional<std::int64_t> read_gpus(const std::string& text, Diagnostics& problems) {
  std::int64_t gpus = 0;
  const std::string problem = read_integer(text, 1, kMostGpus, gpus);
  if (problem.empty()) return gpus;
  problems.push_back(wrong_flag("--gpus", problem));
  return std::nullopt;
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

/// Takes sequences that the model's table has positions for, where nobody states their length.
void fit_positions(Subject& subject) {
  const std::int64_t positions = learned_positions(subject.model);
  if (positions == 0 || positions >= subject.job.sequence_length) return;
  subject.job.sequence_length = positions;
  subject.assumptions.push_back(
      {"sequence.positions",
       fmt::format("sequences of {} tokens, as many as {} has positions (--sequence-length)",
                   format_count(positions), subject.model.name),
       "docs/models.md"});
}

}  // namespace

void note_curves(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                 std::vector<Assumption>& assumptions) {
  std::optional<Assumption> note =
      curves_assumption(cluster, {job.precision, model.num_experts > 0});
  if (note) assumptions.push_back(*std::move(note));
}

void note_usual_kernels(const AskedJob& asked, const ModelSpec& model, const JobSpec& job,
                        std::span<const EngineProfile* const> engines,
                        std::vector<Assumption>& assumptions) {
  const auto adamw = asked.texts.find("adamw");
  const bool open =
      (adamw == asked.texts.end() || adamw->second.empty()) && !asks_for_stack(asked.texts);
  std::erase_if(assumptions, [](const Assumption& each) { return each.id.ends_with(".usual"); });
  for (Assumption& each : usual_kernels_assumptions(model, job, engines, open)) {
    assumptions.push_back(std::move(each));
  }
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
  const EngineProfile* engine =
      read_engine(asked.engine.empty() ? kUsualEngine : asked.engine, problems);
  if (engine != nullptr) subject.engine = *engine;
  take_stack(texts, subject, problems);
  const double watts = take_power_limit(texts, problems);
  const AdapterTexts adapters = take_adapter_texts(texts);
  subject.job = job_of(texts, problems);

  Result<ReadModel> model = load_model_and_keys(asked.model);
  if (model) {
    std::vector<Assumption> absent = absent_keys_assumption(model->model, model->absent_keys);
    subject.assumptions.insert(subject.assumptions.begin(), absent.begin(), absent.end());
    subject.model = std::move(model->model);
    if (engine != nullptr) add_asked_adapters(adapters, subject, problems);
    expand_modules(subject, problems);
    const auto length = asked.texts.find("sequence_length");
    if (length == asked.texts.end() || length->second.empty()) {
      fit_positions(subject);
    } else if (parse_integer(length->second) == subject.job.sequence_length) {
      append_problems(problems, check_positions(subject.model, subject.job, subject.engine));
    }
    append_problems(problems, check_operations(subject.model, subject.job));
    if (by_module) name_modules_flag(problems);
  } else {
    append_problems(problems, model.problems());
  }
  Result<ClusterSpec> cluster = find_cluster(asked.cluster);
  if (cluster) {
    subject.cluster = *std::move(cluster);
    limit_power(watts, subject, problems);
    subject.gpus_given = !asked.gpus.empty();
    std::int64_t gpus = subject.cluster.gpus_per_node;
    if (subject.gpus_given) gpus = read_gpus(asked.gpus, problems).value_or(gpus);
    Result<ClusterSpec> sized = with_gpus(subject.cluster, gpus);
    if (sized) {
      subject.cluster = *std::move(sized);
    } else {
      append_problems(problems, sized.problems());
    }
    const auto open = [&](const char* field) {
      const auto at = texts.find(field);
      return at == texts.end() || at->second.empty();
    };
    if (open("precision")) subject.job.precision = usual_precision(subject.cluster.gpu);
    if (open("loss_chunk_rows")) {
      subject.job.loss_chunk_rows = usual_loss_chunk_rows(subject.cluster.gpu);
    }
    if (open("loss")) subject.job.loss = LossKernel::by_engine;
    append_problems(problems, check_precision(subject.cluster, subject.job));
  } else {
    append_problems(problems, cluster.problems());
  }
  if (!problems.empty()) return problems;
  const EngineProfile* const engines[] = {&subject.engine};
  note_usual_kernels(asked, subject.model, subject.job, engines, subject.assumptions);
  return subject;
}

}  // namespace shardwise
