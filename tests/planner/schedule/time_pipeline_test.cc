#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "planner/schedule/pipeline.h"
#include "tests/support/pipeline_ways.h"

namespace shardwise {
namespace {

using test::pipeline_layout;

/// Seconds of a stage's passes for one micro-batch, all its chunks together.
struct StagePace {
  double forward = 1;
  double input = 1;
  double weight = 1;
};

/// A step of equal stages.
double length(const Layout& layout, int m, const StagePace& pace, double hop = 0) {
  const PipelineSlots slots = pipeline_slots(layout, m);
  // Under DualPipe a stage holds two parts of the model, of which a micro-batch meets one.
  const double share = layout.schedule == PipelineSchedule::dualpipe ? 1.0 : 1.0 / slots.chunks;
  const ChunkTime chunk = {Seconds(pace.forward * share),
                           Seconds((pace.input + pace.weight) * share),
                           Seconds(pace.weight * share)};
  const std::vector<ChunkTime> chunks(static_cast<std::size_t>(slots.stages * slots.chunks), chunk);
  return run_pipeline(slots, chunks, Seconds(hop)).length.value();
}

/// Idle time of the stage that works without a break, or rather of any: all end a step together.
double idle(const Layout& layout, int m, const StagePace& pace = {}) {
  return length(layout, m, pace) -
         static_cast<double>(m) * (pace.forward + pace.input + pace.weight);
}

// Huang et al., arXiv:1811.06965; Narayanan et al., arXiv:2104.04473, section 2.2.1:
// (p - 1)(f + b).
TEST(PipelineRun, IdlesForOnePassOfEachOtherStage) {
  for (const int p : {2, 4, 8, 16}) {
    for (const int m : {1, 2, 8, 64}) {
      for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
        EXPECT_NEAR(idle(pipeline_layout(schedule, p), m), 3.0 * (p - 1), 1e-9) << p << " " << m;
      }
    }
  }
}

// Section 2.2.2: divided by the chunks of a stage; the same breadth first (Lamy-Poirier,
// arXiv:2211.05953).
TEST(PipelineRun, IdlesLessByTheChunksOfAStage) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3, 6}) {
      for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::looped_bfs}) {
        EXPECT_NEAR(idle(pipeline_layout(schedule, p, v), 2 * p), 3.0 * (p - 1) / v, 1e-9)
            << p << v;
      }
    }
  }
}

// Breadth first, each further chunk waits until the first micro-batch has gone round.
TEST(PipelineRun, IdlesForEachFurtherChunkWhereMicrobatchesAreFew) {
  EXPECT_NEAR(idle(pipeline_layout(PipelineSchedule::looped_bfs, 4, 3), 3), (3 + 2 * 1) * 3 / 3.0,
              1e-9);
}

// Qi et al., arXiv:2401.10241, sections 2.2 and 2.3, b both gradients: ZB-H1 (p - 1)(f + b - 2 w).
// ZB-H2 and ZB-V never wait between the first and the last pass of a stage; all stages end a step
// together, so the last one has waited for p - 1 forward passes before its first, of half a
// stage's work where it holds two chunks.
TEST(PipelineRun, IdlesAsZeroBubbleSchedulesDo) {
  for (const int p : {2, 4, 8}) {
    EXPECT_NEAR(idle(pipeline_layout(PipelineSchedule::zb_h1, p), 3 * p), p - 1, 1e-9);
    EXPECT_NEAR(idle(pipeline_layout(PipelineSchedule::zb_h2, p), 3 * p), p - 1, 1e-9);
    EXPECT_NEAR(idle(pipeline_layout(PipelineSchedule::zb_v, p), 3 * p), 0.5 * (p - 1), 1e-9);
  }
}

// DeepSeek-V3, arXiv:2412.19437, table 2: (p/2 - 1)(F&B + B - 3 W). On half as many stages of two
// chunks it is that of twice the stages (deepseek-ai/DualPipe:README.md).
TEST(PipelineRun, IdlesAsTheTableOfDualPipeSays) {
  for (const int p : {2, 4, 8, 16}) {
    for (const StagePace& pace : {StagePace{1, 1, 1}, StagePace{2, 2, 1}, StagePace{4, 4, 3}}) {
      const double b = pace.input + pace.weight;
      const double bubble = (p / 2.0 - 1) * (pace.forward + b + b - 3 * pace.weight);
      EXPECT_NEAR(idle(pipeline_layout(PipelineSchedule::dualpipe, p), 2 * p, pace), bubble, 1e-9)
          << p;
      const StagePace twice = {2 * pace.forward, 2 * pace.input, 2 * pace.weight};
      EXPECT_NEAR(idle(pipeline_layout(PipelineSchedule::dualpipe_v, p / 2), 2 * p, twice), bubble,
                  1e-9)
          << p;
    }
  }
}

TEST(PipelineRun, FillsAtThePaceOfEachStageWhereTheyDiffer) {
  // Stages of 1, 2 and 4 seconds: the last and slowest waits for the others once.
  const PipelineSlots slots = pipeline_slots(pipeline_layout(PipelineSchedule::one_f_one_b, 3), 10);
  const std::vector<ChunkTime> chunks = {{Seconds(0.5), Seconds(0.5), Seconds(0)},
                                         {Seconds(1), Seconds(1), Seconds(0)},
                                         {Seconds(2), Seconds(2), Seconds(0)}};
  EXPECT_NEAR(run_pipeline(slots, chunks, Seconds(0)).length.value(), 10 * 4 + 3, 1e-9);
}

/// Messages that a step waits for, where each is short beside a pass.
double waited(const Layout& layout, int m) {
  constexpr double kHop = 1e-6;
  const StagePace pace = {0.33, 0.4, 0.27};
  return (length(layout, m, pace, kHop) - length(layout, m, pace)) / kHop;
}

// A receive is posted when the pass before it has ended. Two stages hand each other something after
// every pass: m activations, of which all but the first meet a gradient on its way back, and the
// last gradient. A stage between two others waits for both neighbours, 2 m, and 2 (p - 1) - 3 more
// fill and drain: what the first activation and the last gradient need on their ways, less what was
// counted with the micro-batches. GPipe has 2 m in all and 2 (p - 1) to fill and drain, less the
// one of each direction that is both.
TEST(PipelineMessages, AreWaitedForAfterEachPassWithoutChunks) {
  for (const int m : {16, 32}) {
    const auto all = static_cast<double>(m);
    EXPECT_NEAR(waited(pipeline_layout(PipelineSchedule::one_f_one_b, 2), m), all + 1, 0.01);
    for (const int p : {4, 8}) {
      EXPECT_NEAR(waited(pipeline_layout(PipelineSchedule::one_f_one_b, p), m),
                  2 * all + 2 * (p - 1) - 3, 0.01);
    }
    for (const int p : {2, 4, 8}) {
      EXPECT_NEAR(waited(pipeline_layout(PipelineSchedule::gpipe, p), m), 2 * all + 2 * (p - 1) - 2,
                  0.01);
    }
  }
}

// Posted ahead, a message is waited for where nothing else is left to run: an activation goes
// through all v p chunks of the model before the first gradient is there, the last gradient back,
// v p - 1 messages each way. Breadth first a stage has other micro-batches of a chunk meanwhile
// where there are more than stages: p - 1 each way.
TEST(PipelineMessages, AreWaitedForToFillAndToDrainWithChunks) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 4}) {
      EXPECT_NEAR(waited(pipeline_layout(PipelineSchedule::one_f_one_b, p, v), 2 * p),
                  2 * (v * p - 1), 0.01);
      EXPECT_NEAR(waited(pipeline_layout(PipelineSchedule::looped_bfs, p, v), 2 * p), 2 * (p - 1),
                  0.01);
    }
  }
}

}  // namespace
}  // namespace shardwise
