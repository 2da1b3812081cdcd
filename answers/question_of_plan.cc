#include "answers/question_of_plan.h"

#include "planner/engines/executed.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::sim {

PlanQuestion question_of(const Plan& plan, std::size_t top) {
  PlanQuestion question;
  question.model = plan.model;
  question.job = plan.job;
  question.clusters = {plan.cluster};
  if (plan.cluster.gpus != plan.layout.world()) {
    const Result<ClusterSpec> used = with_gpus(plan.cluster, plan.layout.world());
    if (used) question.clusters = {*used};
  }
  question.engines = {&plan.engine};
  question.executed = executor_trains_on(plan.cluster);
  question.top = top;
  return question;
}

}  // namespace shardwise::sim
