#include "planner/schedule/held_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "planner/schedule/schedule.h"
#include "planner/schedule/stages.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"
#include "tests/support/pipeline_ways.h"

namespace shardwise::test {
namespace {

/// Most bytes of the passes besides the one that runs, while `order` runs: by its chunk, forward
/// and backward.
using Fullest = std::map<std::pair<std::int32_t, bool>, std::int64_t>;
Fullest fullest_of(const std::vector<PipelinePass>& order, const std::vector<std::int64_t>& saved) {
  Fullest fullest;
  std::int64_t now = 0;
  for (const PipelinePass& pass : order) {
    const std::int64_t own = saved[static_cast<std::size_t>(pass.chunk)];
    const bool forward = pass.part == LayerPart::forward;
    if (pass.part != LayerPart::backward_weight) {
      std::int64_t& most = fullest[{pass.chunk, !forward}];
      most = std::max(most, forward ? now : now - own);
    }
    if (forward) now += own;
    if (pass.part == LayerPart::backward || pass.part == LayerPart::backward_weight) now -= own;
  }
  return fullest;
}

const std::vector<Way> kWays = all_ways({2, 3, 5, 7});

/// Fewest micro-batches a stage.
std::int32_t fewest_rounds(const Way& way) {
  return std::max(1, facts_of(way.schedule).microbatches_a_stage);
}

// The rule knows nothing of the order of passes; the order, nothing of the rule. Chunks weigh what
// chance says, so that which of them are held shows.
TEST(HeldPasses, AreTheFullestOfTheSchedulesPasses) {
  std::mt19937 random(22);
  for (const Way& way : kWays) {
    for (const std::int32_t pp : {2, 3, 4, 6, 8}) {
      if (facts_of(way.schedule).copies_model && pp % 2 == 1) continue;
      for (std::int32_t rounds = fewest_rounds(way); rounds < fewest_rounds(way) + 4; ++rounds) {
        const Layout layout = {.pp = pp, .vpp = way.vpp, .schedule = way.schedule};
        const std::int32_t m = rounds * pp;
        std::vector<std::int64_t> saved(static_cast<std::size_t>(chunks_of_stage(layout)));
        for (std::int32_t stage = 0; stage < pp; ++stage) {
          for (std::int64_t& each : saved) each = 1 + static_cast<std::int64_t>(random() % 1000);
          const SavedChunks kept(saved);
          for (const auto& [pass, most] : fullest_of(pass_order(layout, stage, m), saved)) {
            const HeldPasses held = held_passes(layout, stage, m, pass.first, pass.second, kept);
            EXPECT_EQ(bytes_of(held, kept), most)
                << name_of(way.schedule) << " vpp " << way.vpp << " pp " << pp << " m " << m
                << " stage " << stage << " chunk " << pass.first << " backward " << pass.second;
          }
        }
      }
    }
  }
}

// Of the schedules that our executor runs: of backward passes all but those of the first
// micro-batch.
TEST(HeldPasses, AreThoseOfPassesThatJoinEarlierMicrobatches) {
  std::mt19937 random(24);
  for (const Way& way : kWays) {
    if (facts_of(way.schedule).v_shaped || facts_of(way.schedule).splits_backward) continue;
    for (const std::int32_t pp : {2, 3, 4, 6, 8}) {
      for (const std::int32_t m : {pp, 2 * pp, 3 * pp, 4 * pp}) {
        const Layout layout = {.pp = pp, .vpp = way.vpp, .schedule = way.schedule};
        std::vector<std::int64_t> saved(static_cast<std::size_t>(chunks_of_stage(layout)));
        for (std::int32_t stage = 0; stage < pp; ++stage) {
          for (std::int64_t& each : saved) each = 1 + static_cast<std::int64_t>(random() % 1000);
          const SavedChunks kept(saved);
          std::vector<std::int64_t> most(saved.size());
          std::int64_t now = 0;
          for (const PipelinePass& pass : pass_order(layout, stage, m)) {
            const auto chunk = static_cast<std::size_t>(pass.chunk);
            now += pass.part == LayerPart::forward ? saved[chunk] : -saved[chunk];
            const bool joins = pass.part == LayerPart::backward && pass.microbatch > 0;
            if (joins) most[chunk] = std::max(most[chunk], now);
          }
          for (std::size_t c = 0; c < saved.size(); ++c) {
            const auto chunk = static_cast<std::int32_t>(c);
            EXPECT_EQ(bytes_of(held_when_joining(layout, stage, m, chunk, kept), kept), most[c])
                << name_of(way.schedule) << " vpp " << way.vpp << " pp " << pp << " m " << m
                << " stage " << stage << " chunk " << c;
          }
        }
      }
    }
  }
}

// Chunks that keep alike are asked for together, whatever each keeps.
TEST(HeldChoices, HaveTheFullestOfChunksThatKeepAlike) {
  std::mt19937 random(23);
  for (const Way& way : kWays) {
    for (const std::int32_t pp : {2, 4, 8}) {
      const Layout layout = {.pp = pp, .vpp = way.vpp, .schedule = way.schedule};
      const auto chunks = static_cast<std::size_t>(chunks_of_stage(layout));
      for (std::int32_t rounds = fewest_rounds(way); rounds < fewest_rounds(way) + 4; ++rounds) {
        const std::int32_t m = rounds * pp;
        for (std::int32_t stage = 0; stage < pp; ++stage) {
          // Each chunk is like a drawn one before it, or the first of its kind.
          std::vector<std::int32_t> alike(chunks);
          for (std::size_t i = 0; i < chunks; ++i) {
            const auto like = random() % (i + 1);
            alike[i] = like == i ? static_cast<std::int32_t>(i) : alike[like];
          }
          const HeldChoices choices(layout, stage, m, alike);
          for (int draws = 0; draws < 3; ++draws) {
            std::vector<std::int64_t> saved(chunks);
            for (std::size_t i = 0; i < chunks; ++i) {
              const auto like = static_cast<std::size_t>(alike[i]);
              saved[i] = like == i ? 1 + static_cast<std::int64_t>(random() % 1000) : saved[like];
            }
            Fullest expected;
            for (const auto& [pass, most] : fullest_of(pass_order(layout, stage, m), saved)) {
              std::int64_t& of_kind =
                  expected[{alike[static_cast<std::size_t>(pass.first)], pass.second}];
              of_kind = std::max(of_kind, most);
            }
            for (const auto& [pass, most] : expected) {
              EXPECT_EQ(choices.most(pass.first, pass.second, saved), most)
                  << name_of(way.schedule) << " vpp " << way.vpp << " pp " << pp << " m " << m
                  << " stage " << stage << " chunk " << pass.first << " backward " << pass.second;
            }
          }
        }
      }
    }
  }
}

// Megatron-LM's warm-up, get_pp_rank_microbatches: 2 (p - 1 - s) + (v - 1) p passes; then one more
// is begun before one comes back. By hand for p 2, v 2: stage 0 begins chunk 0 of two
// micro-batches, chunk 1 of them, chunk 0 of the next.
TEST(HeldPasses, AreMegatronsWarmUpByHand) {
  const Layout layout = {.pp = 2, .vpp = 2};
  const SavedChunks low(std::vector<std::int64_t>{100, 1});
  const HeldPasses fullest = held_passes(layout, 0, 8, 0, false, low);
  EXPECT_EQ(fullest.of(0), 3);
  EXPECT_EQ(fullest.of(1), 1);
  const SavedChunks high(std::vector<std::int64_t>{1, 100});
  const HeldPasses other = held_passes(layout, 0, 8, 0, false, high);
  EXPECT_EQ(other.of(0), 2);
  EXPECT_EQ(other.of(1), 2);
}

}  // namespace
}  // namespace shardwise::test
