#include "planner/cost/step/pipeline_path.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "planner/cost/step/pass_streams.h"
#include "planner/schedule/pipeline_sweep.h"
#include "planner/spec/plan/names.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise::test {
namespace {

struct PathCase {
  PipelineSchedule schedule;
  std::int32_t pp = 4;
  std::int32_t vpp = 1;
  std::int64_t microbatches = 8;
  const char* engine = "megatron_ddp";
};
constexpr PathCase kPathCases[] = {{PipelineSchedule::one_f_one_b, 2, 1, 1},
                                   {PipelineSchedule::one_f_one_b, 4, 1, 12},
                                   {PipelineSchedule::one_f_one_b, 8, 1, 64},
                                   {PipelineSchedule::one_f_one_b, 4, 3, 8},
                                   {PipelineSchedule::one_f_one_b, 8, 4, 32},
                                   {PipelineSchedule::gpipe, 4, 1, 9},
                                   {PipelineSchedule::looped_bfs, 4, 2, 8},
                                   {PipelineSchedule::zb_h1, 4, 1, 12},
                                   {PipelineSchedule::zb_h2, 4, 1, 12},
                                   {PipelineSchedule::zb_v, 4, 1, 12},
                                   {PipelineSchedule::dualpipe, 4, 1, 12},
                                   {PipelineSchedule::dualpipe_v, 4, 1, 12},
                                   // Messages take turns with buffers.
                                   {PipelineSchedule::looped_bfs, 4, 2, 8, "shardwise"},
                                   {PipelineSchedule::looped_bfs, 2, 8, 12, "shardwise"},
                                   {PipelineSchedule::one_f_one_b, 4, 1, 12, "shardwise"},
                                   {PipelineSchedule::gpipe, 4, 1, 9, "shardwise"},
                                   {PipelineSchedule::zb_h2, 4, 1, 12, "shardwise"},
                                   {PipelineSchedule::zb_v, 4, 1, 12, "shardwise"},
                                   {PipelineSchedule::dualpipe, 4, 1, 12, "shardwise"},
                                   {PipelineSchedule::dualpipe_v, 4, 1, 12, "shardwise"}};

/// A pipeline that may offload activations, with what its layers take drawn anew each time.
class Drawn {
 public:
  Drawn(const PathCase& c, unsigned seed) : random_(seed) {
    priced_.engine = *find_engine(c.engine);
    priced_.layout = {.tp = 2, .pp = c.pp, .dp_shard = 2};
    priced_.layout.vpp = c.vpp;
    priced_.layout.schedule = c.schedule;
    priced_.layout.zero_stage = 1;
    priced_.size(c.microbatches);
    priced_.layout.offload_activations = true;
    stages_ = priced_.stages();
    rules_ = time_rules(priced_.job, priced_.engine, priced_.cluster);
    rules_.issue = Seconds(0);
  }

  /// Paces a pipeline anew and sweeps it, with copies to the host or without.
  /// \returns its length
  double sweep_anew(bool copies = false) {
    for (LayerPace& layer : stages_.pipeline.layers) {
      layer.time.forward = draw(1e-3);
      layer.time.weight_gradient = draw(1e-3);
      layer.time.backward = layer.time.weight_gradient + draw(2e-3);
      layer.saved = static_cast<std::int64_t>(draw(5e7).value());
    }
    stages_.hop = draw(1e-3);
    const PipelineTimes& old = stages_.pipeline;
    stages_.pipeline =
        pipeline_times(old.slots, assign_stages(priced_.model, priced_.layout), old.layers);
    if (!copies) {
      sweep(stages_.pipeline, stages_.hop, ends_);
      return stages_.pipeline.run.length.value();
    }
    CollectiveTables tables(priced_.cluster);
    const DataParallelTables groups =
        data_parallel_tables(tables, priced_.cluster, priced_.layout, {false, false});
    const LeafContext context = {&rules_, &priced_.layout, &groups, priced_.num_microbatches()};
    PassStreams passes(stages_, context, {});
    return sweep_pipeline(*stages_.pipeline.slots, passes, stages_.hop, ends_.end).length.value();
  }

  PathTimes times() const {
    return {stages_.pipeline.layers, stages_.hop, priced_.cluster.host_link};
  }
  PathCounts longest(bool copies = false) const {
    return longest_path(stages_.pipeline, times(), ends_.end, copies);
  }

 private:
  Seconds draw(double most) {
    // A few times what the others take, so that the longest path changes.
    const double share = std::uniform_real_distribution<>(0, 1)(random_);
    return Seconds(most * (random_() % 4 == 0 ? 5 : 1) * share);
  }

  std::mt19937 random_;
  Priced priced_;
  StageTimes stages_;
  TimeRules rules_;
  SlotEnds ends_;
};

std::string named(const PathCase& c) {
  return std::string(c.engine) + " " + std::string(name_of(c.schedule)) + " pp " +
         std::to_string(c.pp) + " vpp " + std::to_string(c.vpp) + " m " +
         std::to_string(c.microbatches);
}

// A sweep takes maxima, the path sums of what lies on it.
TEST(LongestPath, IsAsLongAsTheSweep) {
  for (const PathCase& c : kPathCases) {
    Drawn drawn(c, 5);
    for (int i = 0; i < 20; ++i) {
      const double length = drawn.sweep_anew();
      EXPECT_NEAR(length_of(drawn.longest(), drawn.times().without_copies()).value(), length,
                  1e-11 * length)
          << named(c);
    }
  }
}

// Whichever times it was found with: then no sweep of the schedule is shorter than a known path,
// and one that is longer finds the path that was missing, or with copies one of the longer ones.
TEST(KnownPaths, AreBelowEverySweepOfTheSchedule) {
  for (const PathCase& c : kPathCases) {
    Drawn drawn(c, 6);
    KnownPaths known;
    int reached = 0;
    for (int i = 0; i < 60; ++i) {
      const bool copies = i % 2 == 1;
      const double length = drawn.sweep_anew(copies);
      const PathTimes times = drawn.times();
      const auto seconds = copies ? times.all() : times.without_copies();
      EXPECT_LE(known.floor(seconds).value(), length * (1 + 1e-11)) << named(c);
      if (!known.is_news(Seconds(length), seconds)) {
        ++reached;
        continue;
      }
      known.add(drawn.longest(copies));
      EXPECT_LE(known.floor(seconds).value(), length * (1 + 1e-11)) << named(c);
      EXPECT_TRUE(copies || !known.is_news(Seconds(length), seconds)) << named(c);
    }
    EXPECT_GT(reached, 0) << named(c);
  }
}

}  // namespace
}  // namespace shardwise::test
