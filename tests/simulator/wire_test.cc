// A step is never shorter than the bytes of any link over its bandwidth, whatever the layout (D3).

#include <array>
#include <string>

#include "planner/model/hf_config.h"
#include "simulator/link_times.h"
#include "tests/simulator/drawn_layouts.h"

namespace shardwise::sim {
namespace {

/// The busiest link of any stage, as a share of the step, with everything shared.
double busiest(const Plan& plan, Granularity granularity) {
  SimulationOptions options;
  options.granularity = granularity;
  double most = 0;
  for (const auto& stage : link_times(plan, simulate(plan, options))) {
    for (const LinkTime& link : stage) most = std::max(most, link.utilisation);
  }
  return most;
}

void expect_carried(const Plan& plan) {
  const std::string named = plan.engine.name + " " + plan.model.name + " " + plan.cluster.name +
                            " " + test::text_of(plan.layout);
  EXPECT_LE(busiest(plan, Granularity::layer), 1 + 1e-9) << named;
  EXPECT_LE(busiest(plan, Granularity::kernel), 1 + 1e-9) << named << " kernel by kernel";
}

Plan plan_of(const char* model, const char* cluster, const char* engine) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster(cluster), 64);
  plan.engine = *find_engine(engine);
  plan.layout.tp = 8;
  plan.layout.zero_stage = 3;
  return plan;
}

TEST(Wire, CarriesRingAttentionBesideGathersOfOurEngine) {
  Plan plan = plan_of("llama-2-13b", "dgx-b200", "shardwise");
  plan.layout.cp = 4;
  plan.layout.dp_shard = 2;
  plan.layout.micro_batch_size = 4;
  plan.job.global_batch_size = 16;
  expect_carried(plan);
}

TEST(Wire, CarriesRingAttentionBesideGathersOfFsdp2) {
  Plan plan = plan_of("opt-30b", "dgx-b200", "fsdp2_in_megatron");
  plan.layout.cp = 2;
  plan.layout.dp_shard = 4;
  plan.job.sequence_length = 16384;
  plan.job.global_batch_size = 4;
  expect_carried(plan);
}

// Slow links, shared NICs and oversubscribed switches, so that many are nearly full.
TEST(Wire, CarriesDrawnLayouts) {
  std::uint32_t seed = 20261123;
  int drawn = 0;
  int full = 0;
  for (const char* cluster : {"dgx-b200", "aws-p4d", "gcp-a3-mega", "laptop"}) {
    for (const std::string& engine : engine_names()) {
      for (const bool experts : {false, true}) {
        Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
        plan.cluster = *with_gpus(*find_cluster(cluster), 32);
        plan.job.sequence_length = 1024 << (seed % 4);
        plan.job.expert_overlap = experts && seed % 2 == 0;
        draw(plan, 12, ++seed, [&](const Plan& each) {
          ++drawn;
          expect_carried(each);
          if (busiest(each, Granularity::layer) > 0.75) ++full;
        });
      }
    }
  }
  EXPECT_GT(drawn, 500);
  EXPECT_GT(full, 20);
}

}  // namespace
}  // namespace shardwise::sim
