// Bytes inside a layer's pass count on the links whether or not they are operations of their own.

#include "simulator/clock/link_times.h"

#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::sim {
namespace {

Plan megatron_plan(const char* model, std::int64_t gpus, const Layout& layout) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout = layout;
  plan.job.global_batch_size = 16;
  return plan;
}

Layout tensor_parallel() {
  Layout layout;
  layout.tp = 8;
  layout.sequence_parallel = true;
  layout.pp = 2;
  layout.dp_shard = 2;
  layout.zero_stage = 1;
  return layout;
}

void expect_equal_links(const Plan& plan) {
  SimulationOptions kernels;
  kernels.granularity = Granularity::kernel;
  const auto whole = link_times(plan, simulate(plan));
  const auto parts = link_times(plan, simulate(plan, kernels));
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t s = 0; s < whole.size(); ++s) {
    ASSERT_EQ(whole[s].size(), parts[s].size()) << s;
    for (std::size_t l = 0; l < whole[s].size(); ++l) {
      const auto bytes = static_cast<double>(parts[s][l].carried.value());
      EXPECT_NEAR(static_cast<double>(whole[s][l].carried.value()), bytes, 1e-9 * bytes)
          << s << " " << whole[s][l].tier;
    }
  }
}

TEST(LinkTimes, CountTensorParallelBytesOfWholePasses) {
  expect_equal_links(megatron_plan("llama-3.1-8b", 32, tensor_parallel()));
}

TEST(LinkTimes, CountThemAgainWhereLayersAreRecomputed) {
  for (const std::int32_t interval : {1, 2}) {
    Layout layout = tensor_parallel();
    layout.recompute = Recompute::full;
    layout.recompute_interval = interval;
    expect_equal_links(megatron_plan("llama-3.1-8b", 32, layout));
  }
}

TEST(LinkTimes, CountRingStepsAndTheExchangeOfExperts) {
  Layout layout;
  layout.cp = 2;
  layout.ep = 8;
  layout.dp_shard = 8;
  layout.zero_stage = 1;
  expect_equal_links(megatron_plan("mixtral-8x7b", 16, layout));
}

// Korthikanti et al. 2022, section 4.2.2: a layer's forward pass gathers its input twice and
// scatters its output twice, each (t - 1) / t of the activation over a rank's link; its backward
// pass does the same and gathers the two saved inputs again.
TEST(LinkTimes, AreKorthikantisForOneLayer) {
  const auto nvlink = [](std::int32_t layers) {
    Layout layout = tensor_parallel();
    layout.pp = layout.dp_shard = 1;
    Plan plan = megatron_plan("llama-3.1-8b", 8, layout);
    plan.model.layers.erase(plan.model.layers.begin() + 1 + layers, plan.model.layers.end() - 1);
    return link_times(plan, simulate(plan)).front().front().carried.value();
  };
  const Plan plan = megatron_plan("llama-3.1-8b", 8, tensor_parallel());
  const std::int64_t activation = plan.job.sequence_length * plan.model.hidden_size * 2;
  const std::int64_t norms = 2 * plan.model.hidden_size * 2;
  EXPECT_EQ(nvlink(8) - nvlink(7),
            (std::int64_t{16} * (4 + 4 + 2) * activation + 2 * norms) * 7 / 8);
}

}  // namespace
}  // namespace shardwise::sim
