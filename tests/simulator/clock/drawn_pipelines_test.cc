#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

// Dense models and experts under every engine, on two nodes and on eight.
TEST(SimulatedLayouts, AreNearTheClosedFormInPipelines) {
  Apart apart;
  SeedsOfEngines seeds(20261123);
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {16, 64}) {
      for (const std::string& engine : engine_names()) {
        const Plan plan = experts ? mixture_example(engine, gpus) : example(engine, gpus);
        const auto as_drawn = [](Layout&) {};
        draw_pipelines(plan, 8, seeds.next(engine), as_drawn,
                       [&](const Plan& drawn) { apart.expect_near(drawn); });
      }
    }
  }
  apart.expect_drawn(60);
}

/// Makes a drawn layout one of 8 or 16 stages, of which the first and the last may have few layers.
class Lengthen {
 public:
  Lengthen(std::int64_t gpus, std::uint32_t seed) : gpus_(gpus), random_(seed) {}

  void operator()(Layout& l) {
    l.pp = any(8, 16);
    l.vpp = any(1, any(2, l.vpp));
    l.tp = any(1, 2);
    l.cp = any(1, 2);
    l.dp_replicate = any(1, 2);
    l.ep = std::min(l.ep, 4);
    l.etp = 1;
    l.dp_shard = static_cast<std::int32_t>(
        std::max<std::int64_t>(1, gpus_ / (std::int64_t{l.pp} * l.tp * l.cp * l.dp_replicate)));
    l.micro_batch_size = 1;
    l.first_stage_layers = any(0, any(1, 2));
    l.last_stage_layers = any(0, any(1, 2));
    l.overlap_grad_reduce = l.overlap_param_gather = true;
  }

 private:
  std::int32_t any(std::int32_t a, std::int32_t b) { return random_() % 2 == 0 ? a : b; }

  std::int64_t gpus_;
  std::mt19937 random_;
};

TEST(SimulatedLayouts, AreNearTheClosedFormInLongAndUnevenPipelines) {
  constexpr std::int64_t kGpus = 128;
  Apart apart;
  SeedsOfEngines seeds(20261125);
  for (const bool experts : {false, true}) {
    for (const std::string& engine : engine_names()) {
      Plan plan = experts ? mixture_example(engine, kGpus) : example(engine, kGpus);
      // Stages of two layers and of three, or ones that the ends leave equal.
      plan.model = experts ? test::mixture(34, 2048, 16, 16, 2, 1024, 0)
                           : test::llama(34, 4096, 14336, 32, 8, 32000);
      plan.job.global_batch_size = 64;
      const std::uint32_t seed = seeds.next(engine);
      Lengthen lengthen(kGpus, seed);
      draw_pipelines(plan, 8, seed, lengthen, [&](const Plan& drawn) { apart.expect_near(drawn); });
    }
  }
  apart.expect_drawn(80);
}

// The first stage's first chunk holds the embedding alone and soon waits for its buffers.
TEST(SimulatedLayouts, AreNearTheClosedFormInLoopedPipelinesWithBuffersForMessages) {
  Apart apart;
  std::uint32_t seed = 20261126;
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {8, 32}) {
      Plan plan = experts ? mixture_example("shardwise", gpus) : example("shardwise", gpus);
      // With embedding and head as many layers as chunks.
      plan.model = experts ? test::mixture(14, 2048, 16, 16, 2, 1024, 0)
                           : test::llama(14, 4096, 14336, 32, 8, 32000);
      plan.job.global_batch_size = 64;
      std::mt19937 random(++seed);
      const auto looped = [&](Layout& l) {
        l.schedule = PipelineSchedule::looped_bfs;
        l.pp = 2 << random() % 3;
        l.vpp = 16 / l.pp;
        l.dp_shard = static_cast<std::int32_t>(
            std::max<std::int64_t>(1, gpus / (std::int64_t{l.pp} * l.tp * l.cp * l.dp_replicate)));
      };
      draw_pipelines(plan, 8, seed, looped, [&](const Plan& drawn) { apart.expect_near(drawn); });
    }
  }
  apart.expect_drawn(20);
}

// The two copies of a stage that has less to do are summed before the others are.
TEST(SimulatedLayouts, AreNearTheClosedFormInUnevenPipelinesOfTwoCopies) {
  Apart apart;
  std::uint32_t seed = 20261127;
  for (const bool experts : {false, true}) {
    for (const std::int64_t gpus : {16, 64}) {
      Plan plan = experts ? mixture_example("shardwise", gpus) : example("shardwise", gpus);
      plan.model = experts ? test::mixture(10, 2048, 16, 16, 2, 1024, 0)
                           : test::llama(10, 4096, 14336, 32, 8, 32000);
      plan.job.global_batch_size = 64;
      std::mt19937 random(++seed);
      const auto both_ways = [&](Layout& l) {
        l.schedule = PipelineSchedule::dualpipe;
        l.vpp = 1;
        l.pp = 4 << random() % 2;
        l.dp_shard = static_cast<std::int32_t>(
            std::max<std::int64_t>(1, gpus / (std::int64_t{l.pp} * l.tp * l.cp * l.dp_replicate)));
      };
      draw_pipelines(plan, 6, seed, both_ways,
                     [&](const Plan& drawn) { apart.expect_near(drawn); });
    }
  }
  apart.expect_drawn(12);
}

}  // namespace
}  // namespace shardwise::sim
