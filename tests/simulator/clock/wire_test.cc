// A step is never shorter than the bytes of any link over its bandwidth, whatever the layout (D3).

#include <array>
#include <string>

#include "planner/model/hf_config.h"
#include "simulator/clock/link_times.h"
#include "tests/simulator/clock/drawn_layouts.h"
#include "tests/support/seed.h"

namespace shardwise::sim {
namespace {

/// The busiest link of any stage, with everything shared.
LinkTime busiest(const Plan& plan, Granularity granularity) {
  SimulationOptions options;
  options.granularity = granularity;
  LinkTime most;
  for (const auto& stage : link_times(plan, simulate(plan, options))) {
    for (const LinkTime& link : stage) {
      if (link.busy > most.busy) most = link;
    }
  }
  return most;
}

/// \returns the busiest link's share of the step
double expect_carried(const Plan& plan) {
  const std::string named = plan.engine.name + " " + plan.model.name + " " + plan.cluster.name +
                            " " + test::text_of(plan.layout);
  const LinkTime link = busiest(plan, Granularity::layer);
  EXPECT_LE(link.utilisation, 1 + 1e-9) << named;
  EXPECT_LE(busiest(plan, Granularity::kernel).utilisation, 1 + 1e-9)
      << named << " kernel by kernel";
  StepDetail detail;
  const Seconds step = closed_form_time(plan, {}, &detail).total();
  EXPECT_GE(step, detail.wire) << named;
  EXPECT_GE(step, link.busy * 0.998) << named;
  // Both count the same bytes; padding of buckets and small reductions that end a step, norms and
  // counts, are left out.
  EXPECT_LE(detail.wire, link.busy * (1 + 1e-9)) << named;
  if (plan.layout.pp == 1) {
    EXPECT_GE(detail.wire, link.busy * 0.998) << named;
  }
  return link.utilisation;
}

Plan plan_on_64_gpus(const char* model, const char* cluster, const char* engine) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster(cluster), 64);
  plan.engine = *find_engine(engine);
  plan.layout.tp = 8;
  plan.layout.zero_stage = 3;
  return plan;
}

TEST(Wire, CarriesRingAttentionBesideGathersOfOurEngine) {
  Plan plan = plan_on_64_gpus("llama-2-13b", "dgx-b200", "shardwise");
  plan.layout.cp = 4;
  plan.layout.dp_shard = 2;
  plan.layout.micro_batch_size = 4;
  plan.job.global_batch_size = 16;
  expect_carried(plan);
}

TEST(Wire, CarriesRingAttentionBesideGathersOfFsdp2) {
  Plan plan = plan_on_64_gpus("opt-30b", "dgx-b200", "fsdp2_in_megatron");
  plan.layout.cp = 2;
  plan.layout.dp_shard = 4;
  plan.job.sequence_length = 16384;
  plan.job.global_batch_size = 4;
  expect_carried(plan);
}

// The gradients of a tied table, of 3 GB, meet those of its copy on the last stage.
TEST(Wire, CarriesTheSumOfATiedTable) {
  Plan plan = plan_on_64_gpus("gemma-7b", "dgx-b200", "shardwise");
  plan.cluster = *with_gpus(*find_cluster("dgx-b200"), 18);
  plan.layout.tp = 2;
  plan.layout.sequence_parallel = true;
  plan.layout.pp = 3;
  plan.layout.dp_shard = 3;
  plan.job.sequence_length = 2048;
  plan.job.global_batch_size = 48;
  expect_carried(plan);
}

// Slow links, shared NICs and oversubscribed switches, so that many are nearly full.
TEST(Wire, CarriesDrawnLayouts) {
  int drawn = 0;
  int full = 0;
  for (const char* cluster : {"dgx-b200", "aws-p4d", "gcp-a3-mega", "laptop"}) {
    for (const std::string& engine : engine_names()) {
      std::uint32_t seed = test::seed_of(20261123, engine + " " + cluster);
      for (const bool experts : {false, true}) {
        Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
        plan.cluster = *with_gpus(*find_cluster(cluster), 32);
        plan.job.sequence_length = 1024 << (seed % 4);
        plan.job.expert_overlap = experts && seed % 2 == 0;
        draw(plan, 12, ++seed, [&](const Plan& each) {
          ++drawn;
          if (expect_carried(each) > 0.75) ++full;
        });
        const auto as_drawn = [](Layout&) {};
        draw_pipelines(
            plan, 3, ++seed, as_drawn, [&](const Plan& each) { expect_carried(each); }, 50'000);
      }
    }
  }
  EXPECT_GT(drawn, 500 / drawn_of());
  EXPECT_GT(full, 20 / drawn_of());
}

}  // namespace
}  // namespace shardwise::sim
