#include "planner/spec/plan/gradient_reductions.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "tests/planner/cost/step/time_fixture.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

/// Legal steps of every engine and ZeRO stage on 4 ranks, of two replicas and of one, which reduce
/// after each micro-batch or on the last.
std::vector<Plan> steps() {
  std::vector<Plan> all;
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    for (const int zero_stage : engine.zero_stages) {
      for (const std::int32_t replicas : {1, 2}) {
        for (const bool each : {true, false}) {
          for (const std::int64_t microbatches : {1, 3}) {
            Layout layout;
            layout.dp_shard = 4;
            layout.dp_replicate = replicas;
            layout.zero_stage = static_cast<std::int8_t>(zero_stage);
            layout.reduce_every_microbatch = each;
            Plan plan = small_plan(engine, layout, microbatches);
            if (is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) {
              all.push_back(std::move(plan));
            }
          }
        }
      }
    }
  }
  return all;
}

std::string words_of(const Plan& plan) {
  return plan.engine.name + ", ZeRO " + std::to_string(plan.layout.zero_stage) + ", replicas " +
         std::to_string(plan.layout.dp_replicate) + ", each " +
         std::to_string(plan.layout.reduce_every_microbatch);
}

std::int64_t microbatches_of(const Plan& plan) {
  return plan.job.microbatches(plan.layout.dp(), plan.layout.micro_batch_size);
}

// ZeRO-2 and -3 reduce each micro-batch's gradients or all on the last, ZeRO-0 and -1 on the last;
// replicas sum once a step. Source: Rajbhandari et al., "ZeRO" (arXiv:1910.02054), section 7;
// Megatron-LM@d98e8a64, megatron/core/distributed.
TEST(GradientReductions, AreThoseOfTheLaw) {
  Layout layout;
  for (const int zero_stage : {0, 1, 2, 3}) {
    layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    layout.reduce_every_microbatch = true;
    EXPECT_EQ(reductions_of(layout, 5).inner, zero_stage >= 2 ? 5 : 1);
    EXPECT_EQ(reductions_of(layout, 5).outer, 1);
    layout.reduce_every_microbatch = false;
    EXPECT_EQ(reductions_of(layout, 5).inner, 1);
    EXPECT_EQ(reductions_of(layout, 5).outer, 1);
    EXPECT_EQ(reduces_each_of(layout, 1), zero_stage >= 2);
  }
}

TEST(GradientReductions, OfAProgramAreAsManyOfEachBucket) {
  const std::vector<Plan> all = steps();
  EXPECT_GT(all.size(), 60U);
  for (const Plan& plan : all) {
    SCOPED_TRACE(words_of(plan));
    // By role, layer, bucket and experts.
    std::map<std::tuple<OpRole, std::int32_t, std::int32_t, bool>, std::int64_t> times;
    const StageProgram stage = lower(plan).stages.front();
    for (const ProgramOp& op : stage.operations) {
      if (op.role != OpRole::reduce && op.role != OpRole::reduce_outer) continue;
      ++times[{op.role, op.layer, op.part, op.routed}];
    }
    EXPECT_FALSE(times.empty());
    const Reductions law = reductions_of(plan.layout, microbatches_of(plan));
    for (const auto& [key, number] : times) {
      EXPECT_EQ(number, std::get<0>(key) == OpRole::reduce ? law.inner : law.outer);
    }
  }
}

// The step-time model's bytes are the program's, which pads nothing here but Megatron-FSDP's units.
TEST(GradientReductions, MoveTheSameBytesInTheModelAndInTheProgram) {
  for (const Plan& plan : steps()) {
    if (plan.engine.name == "megatron_fsdp" && plan.layout.zero_stage > 0) continue;
    SCOPED_TRACE(words_of(plan));
    const Priced priced = {plan.model, plan.cluster, plan.job, plan.engine, plan.layout, {}};
    const StepDetail detail = priced.detail();
    const StageProgram stage = lower(plan).stages.front();
    EXPECT_DOUBLE_EQ(detail.reduced_bytes, static_cast<double>(wire_bytes(stage, OpRole::reduce)));
  }
}

}  // namespace
}  // namespace shardwise::test
