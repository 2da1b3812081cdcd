#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "planner/model/hf_config.h"
#include "planner/spec/plan/schedule_facts.h"
#include "tests/simulator/clock/drawn_layouts.h"

// Kernel by kernel a step takes as long as layer by layer, where nothing is shared.

namespace shardwise::sim {
namespace {

/// Kernel by kernel over layer by layer.
double share(const Plan& plan, bool host = false) {
  SimulationOptions options;
  options.contention = false;
  options.host = host;
  const double layers = simulated_length(plan, options).value();
  options.granularity = Granularity::kernel;
  return simulated_length(plan, options).value() / layers;
}

/// Whether all weight gradients follow their input gradients, which shelter of communication there
/// is depends on.
bool splits(const Layout& layout) {
  return facts_of(layout).splits_backward || facts_of(layout).pairs_passes;
}

/// Layouts of every engine, dense and with experts, on one stage and in pipelines.
template <class Visit>
void draw_all(const std::string& cluster, TpOverlap overlap, int each, std::uint32_t seed,
              Visit&& visit) {
  SeedsOfEngines seeds(seed);
  for (const std::string& engine : engine_names()) {
    for (const bool experts : {false, true}) {
      Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
      plan.cluster = *with_gpus(*find_cluster(cluster), 16);
      plan.job.sequence_length = 1024;
      plan.job.tp_overlap = overlap;
      draw(plan, each, seeds.next(engine), visit);
    }
  }
}

TEST(Granularity, DoesNotChangeAStepWhoseTransfersStopCompute) {
  int drawn = 0;
  int near = 0;
  draw_all("dgx-h100", TpOverlap::none, 24, 2026, [&](const Plan& plan) {
    if (plan.layout.cp > 1 && plan.layout.cp_kind == ContextParallelKind::ring) return;
    const double apart = share(plan) - 1;
    EXPECT_NEAR(apart, 0, 0.01) << plan.engine.name << " " << test::text_of(plan.layout);
    ++drawn;
    if (std::abs(apart) < 0.001) ++near;
  });
  RecordProperty("drawn", drawn);
  RecordProperty("within_a_thousandth", near);
  EXPECT_GT(drawn, 250 / drawn_of());
  EXPECT_GT(near, drawn * 9 / 10);
}

// The host issues as many kernels for a layer's parts as for the layer.
TEST(Granularity, HardlyChangesWhatTheHostTakes) {
  Plan plan;
  plan.model = *load_model("llama-2-70b");
  plan.cluster = *with_gpus(*find_cluster("gb300-nvl72"), 1024);
  plan.engine = *find_engine("megatron_fsdp");
  plan.layout.tp = 8;
  plan.layout.sequence_parallel = true;
  plan.layout.pp = 4;
  plan.layout.dp_shard = 32;
  plan.layout.zero_stage = 0;
  plan.job.global_batch_size = 128;
  EXPECT_NEAR(share(plan, true), 1, 0.02);
  plan.job.tp_overlap = TpOverlap::none;
  EXPECT_NEAR(share(plan, true), 1, 0.02);
  plan.layout = {.tp = 2, .cp = 2, .dp_replicate = 4, .sequence_parallel = true};
  plan.model = *load_model("llama-3.2-1b");
  plan.cluster = *with_gpus(*find_cluster("oci-h200"), 16);
  plan.job.global_batch_size = 8;
  EXPECT_NEAR(share(plan, true), 1, 0.05);
}

// What runs beside compute stops it, layer by layer, for as long as it slows it; kernel by kernel
// only where multiprocessors are shared.
TEST(Granularity, HardlyChangesAStepWhoseTransfersArePipelined) {
  int drawn = 0;
  int near = 0;
  for (const char* cluster : {"dgx-h100", "dgx-a100", "laptop"}) {
    draw_all(cluster, TpOverlap::pipelined, 250, 2027, [&](const Plan& plan) {
      if (plan.layout.tp == 1 || splits(plan.layout)) return;
      const double apart = share(plan) - 1;
      EXPECT_TRUE(apart > -0.08 && apart < 0.02)
          << apart << " " << cluster << " " << plan.engine.name << " "
          << test::text_of(plan.layout);
      ++drawn;
      if (std::abs(apart) < 0.01) ++near;
    });
  }
  RecordProperty("drawn", drawn);
  RecordProperty("within_a_hundredth", near);
  EXPECT_GE(drawn, 50 / drawn_of());
  if (!test::kSanitized) {
    EXPECT_GT(near, drawn / 2);
  }
}

}  // namespace
}  // namespace shardwise::sim
