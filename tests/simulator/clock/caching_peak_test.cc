#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/model/hf_config.h"
#include "tests/simulator/clock/drawn_layouts.h"

// Engines with a caching allocator: how far the simulated peak is from the ledger's.

namespace shardwise::sim {
namespace {

/// The simulated peak of each stage over the ledger's.
std::vector<double> shares(const Plan& plan) {
  const Simulation made = simulate(plan);
  const LayoutMemory memory =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
  std::vector<double> shares;
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    shares.push_back(static_cast<double>(made.memory[s].peak_allocated) /
                     static_cast<double>(memory.stages[s].peak_allocated().value()));
  }
  return shares;
}

Plan catalogue_plan(const std::string& engine, const std::string& model, const std::string& cluster,
                    std::int64_t sequence, std::int64_t batch) {
  Plan plan;
  plan.model = *read_model_file("configs/models/" + model + ".json");
  plan.engine = *find_engine(engine);
  plan.cluster = *with_gpus(*find_cluster(cluster), 64);
  plan.job.sequence_length = sequence;
  plan.job.global_batch_size = batch;
  plan.layout.zero_stage = 3;
  plan.layout.dp_shard = 64;
  plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
  return plan;
}

void expect_near(const Plan& plan, double tolerance) {
  for (const double share : shares(plan)) {
    EXPECT_NEAR(share, 1, tolerance) << plan.engine.name << " " << plan.model.name;
  }
}

// Its router's bias is not trained, but lies in units that are: they are let go of with their
// gradients. Its blocks are so large that the gradients of the first ones outweigh activations.
TEST(CachingPeak, IsTheLedgersOfDeepSeekV3) {
  for (const char* engine : {"fsdp1", "internevo", "fsdp2", "fsdp2_in_megatron"}) {
    expect_near(catalogue_plan(engine, "deepseek-v3", "dgx-h100", 1024, 64), 0.01);
    expect_near(catalogue_plan(engine, "deepseek-v3", "dgx-h100", 1024, 128), 0.05);
  }
}

// The input of the embedding's reduction is there at the loss of the next micro-batch.
TEST(CachingPeak, GrowsAsTheLedgerWhereFsdp2KeepsItsLastReduction) {
  constexpr std::int64_t kTable = std::int64_t{128'256} * 4'096 * 4;
  Plan plan = catalogue_plan("fsdp2", "llama-3.1-8b", "dgx-h100", 4096, 128);
  plan.job.loss = LossKernel::materialised;
  const auto peaks = [&plan](bool keeps) {
    plan.engine.keeps_last_reduction = keeps;
    const LayoutMemory memory =
        layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
    return std::array{simulate(plan).memory.front().peak_allocated,
                      memory.stages.front().peak_allocated().value()};
  };
  const std::array without = peaks(false);
  const std::array with = peaks(true);
  EXPECT_EQ(with[0], without[0] + kTable);
  EXPECT_EQ(with[1], without[1] + kTable);
}

// A chunk's gradients are reduced before the next chunk's are made.
TEST(CachingPeak, IsTheLedgersWhereFsdp2Loops) {
  Plan plan = catalogue_plan("fsdp2", "deepseek-v3", "gb200-nvl72", 512, 64);
  plan.layout.pp = 2;
  plan.layout.dp_shard = 32;
  plan.layout.vpp = 4;
  plan.layout.schedule = PipelineSchedule::looped_bfs;
  plan.layout.reshard_after_forward = 0;
  plan.layout.reduce_every_microbatch = false;
  expect_near(plan, 0.05);
  plan.layout.schedule = PipelineSchedule::one_f_one_b;  // one turn a chunk
  plan.job.global_batch_size = 64;
  expect_near(plan, 0.05);
}

// Units stay in the queue of reductions until it has more than its capacity, and at the end of a
// backward pass none does.
TEST(CachingPeak, IsTheLedgersWhereMegatronFsdpQueues) {
  for (const std::int64_t micro_batches : {1, 4}) {
    Plan plan = catalogue_plan("megatron_fsdp", "pythia-2.8b", "dgx-b200", 1024, 32);
    plan.layout.tp = 2;
    plan.layout.sequence_parallel = true;
    plan.layout.dp_shard = 32;
    plan.job.global_batch_size = 32 * micro_batches;
    expect_near(plan, 0.05);
  }
}

// Adapters alone are trained: units are let go of when their inputs have gradients, and so are
// these, unless checkpoints are reentrant.
TEST(CachingPeak, IsTheLedgersOfFrozenUnitsUnderFsdp1) {
  Plan plan = catalogue_plan("fsdp1", "llama-3.1-8b", "dgx-h100", 4096, 64);
  plan.job.frozen_base = true;
  expect_near(plan, 0.05);
  plan.layout.recompute = Recompute::full;
  expect_near(plan, 0.05);
  plan.job.loss = LossKernel::chunked;
  plan.job.recompute_stops_early = false;
  expect_near(plan, 0.05);
  plan.layout.recompute_interval = 3;
  expect_near(plan, 0.05);
}

// Where communication lags a unit is there later than its gather was issued, or waits longer for
// its reduction.
TEST(CachingPeak, IsNearTheLedgersInDrawnLayouts) {
  SeedsOfEngines seeds(20261123);
  int drawn = 0;
  int near = 0;
  for (const std::string& engine : engine_names()) {
    if (find_engine(engine)->allocator == AllocatorKind::arena) continue;
    for (const bool experts : {false, true}) {
      for (const std::int64_t sequence : {512, 4096}) {
        Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
        plan.job.sequence_length = sequence;
        draw(plan, 60, seeds.next(engine), [&](const Plan& each) {
          const Layout& layout = each.layout;
          if (layout.offload_activations || layout.offload_optimizer) return;
          if (layout.dp_shard * layout.cp == 1) return;  // nothing is gathered
          for (const double share : shares(each)) {
            EXPECT_TRUE(share > 0.75 && share < 1.2)
                << share << " " << engine << " " << each.model.name << " "
                << test::text_of(each.layout);
            ++drawn;
            if (std::abs(share - 1) <= 0.05) ++near;
          }
        });
      }
    }
  }
  RecordProperty("stages", drawn);
  RecordProperty("within_5_percent", near);
  EXPECT_GT(drawn, 300 / drawn_of());
  EXPECT_GT(near, drawn * 9 / 10);
}

}  // namespace
}  // namespace shardwise::sim
