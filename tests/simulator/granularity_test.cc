#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "planner/spec/schedule_facts.h"
#include "tests/simulator/drawn_layouts.h"

// Kernel by kernel a step takes as long as layer by layer, where nothing is shared.

namespace shardwise::sim {
namespace {

/// Kernel by kernel over layer by layer.
double share(const Plan& plan) {
  SimulationOptions options;
  options.contention = false;
  options.host = false;
  const double layers = simulated_length(plan, options).value();
  options.granularity = Granularity::kernel;
  return simulated_length(plan, options).value() / layers;
}

/// Whether all weight gradients follow their input gradients, which shelter of communication there
/// is depends on.
bool splits(const Layout& layout) {
  return facts_of(layout).puts_weights_off || facts_of(layout).pairs_passes;
}

/// Layouts of every engine, dense and with experts, on one stage and in pipelines.
template <class Visit>
void draw_all(const std::string& cluster, TpOverlap overlap, int each, std::uint32_t seed,
              Visit&& visit) {
  for (const std::string& engine : engine_names()) {
    for (const bool experts : {false, true}) {
      Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
      plan.cluster = *with_gpus(*find_cluster(cluster), 16);
      plan.job.sequence_length = 1024;
      plan.job.tp_overlap = overlap;
      draw(plan, each, ++seed, visit);
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
  EXPECT_GT(drawn, 250);
  EXPECT_GT(near, drawn * 9 / 10);
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
  EXPECT_GT(drawn, 50);
  EXPECT_GT(near, drawn / 2);
}

}  // namespace
}  // namespace shardwise::sim
