#include "tests/gui/small_plan.h"

#include "gui/models/compare/compare_model.h"
#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise::test {
namespace {

Plan plan_of(const ModelSpec& model, std::int64_t gpus) {
  Plan plan;
  plan.model = model;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.engine = megatron_ddp();
  plan.job.global_batch_size = 64;
  plan.job.sequence_length = 2048;
  plan.layout.dp_shard = static_cast<std::int32_t>(gpus);
  plan.layout.zero_stage = gpus > 1 ? 1 : 0;
  return plan;
}

}  // namespace

Plan small_plan(std::int64_t gpus) {
  ModelSpec model = llama(16, 2048, 5632, 16, 8, 32'000);
  model.name = "small";
  return plan_of(model, gpus);
}

Plan two_stage_plan() {
  Plan plan = small_plan();
  plan.layout.pp = 2;
  plan.layout.dp_shard = 4;
  return plan;
}

Plan four_stage_plan() {
  Plan plan = small_plan();
  plan.layout.pp = 4;
  plan.layout.tp = 2;
  plan.layout.sequence_parallel = true;
  plan.layout.dp_shard = 1;
  plan.layout.zero_stage = 0;
  return plan;
}

Plan two_node_plan() {
  Plan plan = small_plan();
  plan.cluster = *with_gpus(plan.cluster, 16);
  plan.layout.tp = 2;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 2;
  plan.layout.dp_replicate = 2;
  plan.layout.sequence_parallel = true;
  return plan;
}

Plan plan_that_cannot_fit() {
  ModelSpec model = llama_3_1_8b();
  model.name = "too-large";
  return plan_of(model, 1);
}

StepReport report_of(const Plan& plan, Detail detail) {
  return estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, detail);
}

view::CompareView compared(const Plan& plan, const view::Compared& other) {
  return view::compare_view(plan, report_of(plan), other, {});
}

}  // namespace shardwise::test
