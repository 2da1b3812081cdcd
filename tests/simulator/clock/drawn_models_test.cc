#include <array>
#include <string>

#include "planner/model/hf_config.h"
#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

/// Tables that two stages hold, experts stacked in one tensor, encoders and decoders, fused
/// projections, predicted tokens: what models of one layer many times have not.
constexpr std::array<const char*, 8> kModels = {"bloom-3b",     "gemma-2-9b", "gpt-oss-20b",
                                                "t5-3b",        "falcon-7b",  "deepseek-v3",
                                                "mixtral-8x7b", "pythia-1.4b"};
constexpr std::array<const char*, 3> kClusters = {"dgx-h100", "aws-p4d", "mi300x"};

// Under every engine, with collectives beside compute and after it.
TEST(SimulatedLayouts, AreNearTheClosedFormOfEveryKindOfModel) {
  SeedsOfEngines seeds(20261127);
  Apart apart;
  for (const char* model : kModels) {
    for (const std::string& engine : engine_names()) {
      const std::uint32_t seed = seeds.next(engine);
      Plan plan;
      plan.model = *load_model(model);
      plan.engine = *find_engine(engine);
      plan.cluster = *with_gpus(*find_cluster(kClusters[seed % kClusters.size()]), 64);
      plan.job.sequence_length = 1024;
      plan.job.global_batch_size = 64;
      draw(plan, 600, seed, [&](const Plan& drawn) {
        if (is_itself(drawn)) apart.expect_near(drawn);
      });
    }
  }
  apart.expect_drawn(100);
}

}  // namespace
}  // namespace shardwise::sim
