#include "gui/models/question/open_question.h"

#include <algorithm>
#include <utility>

#include "answers/plan_answer.h"
#include "answers/question_of_plan.h"
#include "planner/engines/engines.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/question/subject.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kTop = 10;  // as `shardwise plan` searches

}  // namespace

Result<Plan> best_plan(const sim::PlanQuestion& question) {
  const Result<sim::PlanAnswer> found = sim::answer(question);
  if (!found) return sim::with_executed_hint(question, found.problems());
  const std::vector<sim::PlanRow>& rows =
      found->best.empty() ? found->nothing.nearest : found->best;
  if (rows.empty()) {
    return Diagnostic{"", 0, 0, "", "no layout is legal for " + question.model.name, ""};
  }
  return sim::plan_of(question, rows.front());
}

Result<Plan> best_plan(const sim::AskedPlan& asked) {
  const Result<sim::PlanQuestion> question = sim::read_question(asked);
  if (!question) return question.problems();
  return best_plan(*question);
}

Result<Plan> with_model(const Plan& plan, const std::string& file) {
  Result<ReadModel> model = load_model_and_keys(file);
  if (!model) return model.problems();
  sim::PlanQuestion question = sim::question_of(plan, kTop);
  question.model = std::move(model->model);
  return best_plan(question);
}

Result<Plan> with_cluster(const Plan& plan, const std::string& file) {
  const Result<ClusterSpec> cluster = read_cluster(file);
  if (!cluster) return cluster.problems();
  Result<ClusterSpec> sized = with_gpus(*cluster, plan.layout.world());
  if (!sized) sized = with_gpus(*cluster, cluster->gpus_per_node);
  if (!sized) return sized.problems();
  sim::PlanQuestion question = sim::question_of(plan, kTop);
  question.clusters = {*std::move(sized)};
  return best_plan(question);
}

Result<Plan> plan_of_report(const StepReport& report, const std::string& file) {
  const auto unknown = [&](const char* key, const std::string& message) {
    return Diagnostic{file, 0,       0,
                      key,  message, "give the plan first: shardwise-view plan.json report.json"};
  };
  AskedJob asked;
  asked.model = report.model;
  asked.cluster = report.cluster;
  asked.gpus = std::to_string(report.layout.world());
  asked.engine = report.engine;
  if (find_engine(report.engine) == nullptr) {
    return unknown("/engine", "no engine is called " + report.engine);
  }
  const Result<Subject> subject = read_subject(asked);
  if (!subject) {
    return unknown("", "a report has no plan in it, and the catalogue lacks its model or cluster");
  }
  Plan plan{subject->model, subject->cluster, subject->job, subject->engine, report.layout};
  plan.job.global_batch_size = report.global_batch_size;
  plan.job.sequence_length = report.sequence_length;
  const Diagnostics illegal = check_plan(plan);
  if (!illegal.empty()) return unknown("", "with usual settings it is no plan");
  plan.job = decided_job(plan.model, plan.cluster, plan.job, plan.engine, plan.layout,
                         usable_memory(plan.cluster, plan.job, Bytes(0)));
  return plan;
}

}  // namespace shardwise::view
