#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/cost/software/runtime_memory.h"
#include "planner/engines/engines.h"
#include "simulator/clock/simulate.h"
#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

/// Jobs that together reach what a policy may touch.
std::vector<Plan> jobs(const EngineProfile& engine) {
  Plan dense = example("megatron_ddp", 8);
  dense.model = test::llama(4, 1024, 2816, 16, 4, 31999);
  dense.job.sequence_length = 1024;
  dense.job.global_batch_size = 16;
  Plan experts = dense;
  experts.model = test::mixture(4, 1024, 8, 16, 2, 512, 0);
  Plan narrow = dense;
  narrow.job.precision = DType::fp8;
  Plan summed = dense;
  summed.job.reduce_scatter_with_fp32_accumulation = true;
  std::vector<Plan> all = {dense, experts, narrow, summed};
  for (Plan& each : all) each.engine = engine;
  return all;
}

// What is known of an engine by its name (configs/engines) holds for its variants.
TEST(EngineProfile, OfAVariantIsAnsweredAsItsBaseWhereItStatesNothingElse) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& base = *find_engine(name);
    const EngineProfile other = variant(base, "another", "Another");
    EXPECT_EQ(other.variant_of, name);
    EXPECT_EQ(variant(other, "third", "Third").variant_of, name);
    EXPECT_EQ(runtime_memory(other, find_cluster("dgx-h100")->gpu),
              runtime_memory(base, find_cluster("dgx-h100")->gpu));
    for (Plan& plan : jobs(base)) {
      plan.layout.dp_shard = 8;
      plan.layout.zero_stage = static_cast<std::int8_t>(base.zero_stages.back());
      const Seconds length = simulated_length(plan);
      plan.engine = other;
      EXPECT_EQ(simulated_length(plan), length) << name;
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
