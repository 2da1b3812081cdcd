#include "simulator/clock/versus.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::sim {
namespace {

Plan sharded_plan(const char* engine) {
  Plan plan;
  plan.model = *load_model("llama-3-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  plan.engine = *find_engine(engine);
  plan.layout.dp_shard = 8;
  plan.layout.zero_stage = 3;
  plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
  plan.job.global_batch_size = 8;
  return plan;
}

std::vector<std::string> names(const Versus& found) {
  std::vector<std::string> names;
  for (const MechanismEffect& effect : found.effects) names.push_back(effect.name);
  return names;
}

TEST(Versus, EndsAtTheSecondEngineToTheBit) {
  for (const char* first : {"fsdp2", "fsdp1", "megatron_fsdp", "shardwise"}) {
    for (const char* second : {"fsdp2", "megatron_fsdp", "deepspeed"}) {
      const Versus found = versus(sharded_plan(first), sharded_plan(second), {});
      const StepFigures& last = found.effects.empty() ? found.first : found.effects.back().in_turn;
      EXPECT_EQ(last.step, found.second.step) << first << " to " << second;
      EXPECT_EQ(last.allocated, found.second.allocated) << first << " to " << second;
      EXPECT_EQ(last.reserved, found.second.reserved) << first << " to " << second;
    }
  }
}

TEST(Versus, FindsNothingBetweenAnEngineAndItself) {
  EXPECT_TRUE(versus(sharded_plan("fsdp2"), sharded_plan("fsdp2"), {}).effects.empty());
}

TEST(Versus, ExplainsMegatronFsdpByKnownMechanisms) {
  const Versus found = versus(sharded_plan("fsdp2"), sharded_plan("megatron_fsdp"), {});
  const std::vector<std::string> all = names(found);
  EXPECT_EQ(all.front(), "kernels");
  EXPECT_EQ(std::count(all.begin(), all.end(), "the rest"), 0);
  // Without copies around collectives the same kernels take less time.
  EXPECT_LT(found.second.step, found.equal_kernels().step);
}

TEST(Versus, HoldsKernelsEqualWhenTheJobSaysThem) {
  Plan first = sharded_plan("fsdp2");
  Plan second = sharded_plan("megatron_fsdp");
  first.job.kernels = second.job.kernels = Kernels::transformer_engine;
  const Versus found = versus(first, second, {});
  const Versus usual = versus(sharded_plan("fsdp2"), sharded_plan("megatron_fsdp"), {});
  EXPECT_LT(found.first.step, usual.first.step);
  EXPECT_EQ(found.second.step, usual.second.step);
}

TEST(Versus, AddsUserBuffersWhereAnEngineHasThem) {
  EXPECT_EQ(versus(sharded_plan("fsdp2"), sharded_plan("megatron_fsdp"), {}).beyond.size(), 2U);
  EXPECT_TRUE(versus(sharded_plan("megatron_fsdp"), sharded_plan("fsdp2"), {}).beyond.empty());
}

}  // namespace
}  // namespace shardwise::sim
