#include <gtest/gtest.h>

#include "planner/cost/pipeline.h"

namespace shardwise {
namespace {

/// p equal stages of f + b a micro-batch, w of it weight gradients.
PipelinePace uniform(int p, double f, double b, double w) {
  return {Seconds(f), Seconds(b), Seconds(w), Seconds(p * (f + b))};
}

/// The bubble over the useful time of m micro-batches.
double fraction(PipelineSchedule schedule, int p, int v, std::int64_t m) {
  return pipeline_bubble(schedule, p, v, m, uniform(p, 1, 2, 1)) /
         Seconds(static_cast<double>(m) * 3);
}

// Narayanan et al., arXiv:2104.04473, sections 2.2.1 and 2.2.2.
TEST(PipelineBubble, IsOneLessThanTheStagesOverTheMicrobatches) {
  for (const int p : {2, 4, 8, 16}) {
    for (const std::int64_t m : {1, 2, 8, 64, 512}) {
      const double expected = (p - 1.0) / static_cast<double>(m);
      EXPECT_DOUBLE_EQ(fraction(PipelineSchedule::one_f_one_b, p, 1, m), expected);
      EXPECT_DOUBLE_EQ(fraction(PipelineSchedule::gpipe, p, 1, m), expected);
    }
  }
}

TEST(PipelineBubble, IsDividedByTheModelChunks) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3, 6}) {
      const std::int64_t m = std::int64_t{8} * p;
      EXPECT_DOUBLE_EQ(fraction(PipelineSchedule::one_f_one_b, p, v, m),
                       (p - 1.0) / static_cast<double>(m * v));
    }
  }
}

TEST(PipelineBubble, GrowsWhenTheLastRoundOfMicrobatchesIsShort) {
  const PipelinePace pace = uniform(4, 1, 2, 1);
  const auto idle = [&](std::int64_t m) {
    return pipeline_bubble(PipelineSchedule::one_f_one_b, 4, 2, m, pace);
  };
  EXPECT_DOUBLE_EQ((idle(9) - idle(8)).value(), 3 * 3 / 2.0);  // 3 places of half a stage each
  EXPECT_DOUBLE_EQ((idle(11) - idle(8)).value(), 1 * 3 / 2.0);
}

// Qi et al., arXiv:2401.10241: with equal forward, input-gradient and weight-gradient times ZB-H1
// leaves a third of the bubble and ZB-H2 none between the first and the last pass of a stage. All
// stages end a step together: the last one has waited for p - 1 forward passes before its first,
// for half as many where a stage holds two chunks.
TEST(PipelineBubble, ShrinksInZeroBubbleSchedules) {
  const double usual = fraction(PipelineSchedule::one_f_one_b, 8, 1, 32);
  EXPECT_DOUBLE_EQ(fraction(PipelineSchedule::zb_h1, 8, 1, 32), usual / 3);
  EXPECT_DOUBLE_EQ(fraction(PipelineSchedule::zb_h2, 8, 1, 32), 7 * 1 / (32 * 3.0));
  EXPECT_DOUBLE_EQ(fraction(PipelineSchedule::zb_v, 8, 1, 32), 7 * 0.5 / (32 * 3.0));
}

// DeepSeek-V3, arXiv:2412.19437, table 2: (PP/2 - 1)(F&B + B - 3W).
TEST(PipelineBubble, FollowsTheTableOfDualPipe) {
  const PipelinePace pace = uniform(8, 1, 2.5, 1);
  const Seconds idle = pipeline_bubble(PipelineSchedule::dualpipe, 8, 1, 32, pace);
  EXPECT_DOUBLE_EQ(idle.value(), 3 * (3.5 + 2.5 - 3));
}

// deepseek-ai/DualPipe:README.md: on half as many ranks, each with two of the stages, (PP / 2 - 1)
// times the chunks of half a rank's work.
TEST(PipelineBubble, OfDualPipeVIsThatOfTwiceTheStagesWithHalfTheWork) {
  const PipelinePace pace = {Seconds(1), Seconds(2), Seconds(0.5), Seconds(24)};
  const PipelinePace half = {Seconds(0.5), Seconds(1), Seconds(0.25), Seconds(24)};
  EXPECT_EQ(pipeline_bubble(PipelineSchedule::dualpipe_v, 4, 1, 32, pace),
            pipeline_bubble(PipelineSchedule::dualpipe, 8, 1, 32, half));
}

// Breadth first over v chunks idles as interleaving does; with fewer micro-batches than stages each
// further chunk waits for the difference.
TEST(PipelineBubble, OfLoopedBfsIsThatOfInterleaving) {
  const PipelinePace pace = uniform(4, 1, 2, 1);
  for (const std::int64_t m : {4, 8}) {
    EXPECT_EQ(pipeline_bubble(PipelineSchedule::looped_bfs, 4, 3, m, pace),
              pipeline_bubble(PipelineSchedule::one_f_one_b, 4, 3, m, pace));
  }
  EXPECT_DOUBLE_EQ(pipeline_bubble(PipelineSchedule::looped_bfs, 4, 3, 3, pace).value(),
                   (3 + 2) * 3 / 3.0);
}

TEST(PipelineBubble, FillsAtThePaceOfEachStageWhenTheyDiffer) {
  // Stages of 1, 2 and 4 seconds: the slowest waits for the others once.
  const PipelinePace pace = {Seconds(1.5), Seconds(2.5), Seconds(1), Seconds(7)};
  EXPECT_DOUBLE_EQ(pipeline_bubble(PipelineSchedule::one_f_one_b, 3, 1, 10, pace).value(), 3);
}

TEST(PipelineBubble, IsNothingWithoutAPipeline) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::dualpipe}) {
    EXPECT_EQ(pipeline_bubble(schedule, 1, 1, 8, uniform(1, 1, 2, 1)), Seconds(0));
  }
}

Layout pipeline(PipelineSchedule schedule, int p, int v) {
  Layout layout;
  layout.pp = p;
  layout.vpp = v;
  layout.schedule = schedule;
  return layout;
}

// An activation goes through all v p chunks of the model and a gradient back: v p - 1 messages each
// way before the pipeline is full and after it is empty. 2 m v in all cross a stage's boundary.
TEST(PipelineMessages, AreWaitedForInWarmUpAndFlush) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3, 6}) {
      const std::int64_t m = std::int64_t{8} * p;
      const PipelineMessages messages =
          pipeline_messages(pipeline(PipelineSchedule::one_f_one_b, p, v), m, 2);
      EXPECT_EQ(messages.alone, 2 * (v * p - 1));
      EXPECT_EQ(messages.alone + messages.beside_chunk, 2.0 * static_cast<double>(m) * v);
    }
  }
}

// Two stages hand each other something after every pass: m forward messages, of which all but the
// first meet a gradient on its way back, and the last gradient.
TEST(PipelineMessages, OfTwoStagesAreOneAMicrobatchAndOneMore) {
  const Layout layout = pipeline(PipelineSchedule::one_f_one_b, 2, 1);
  EXPECT_EQ(pipeline_messages(layout, 8, 1).alone, 8 + 1);
  EXPECT_EQ(pipeline_messages(layout, 64, 1).alone, 64 + 1);
}

TEST(PipelineMessages, GrowWithTheChunksOfAStage) {
  EXPECT_EQ(pipeline_messages(pipeline(PipelineSchedule::one_f_one_b, 1, 1), 8, 1).alone, 0);
  double before = 0;
  for (const int v : {2, 4, 8, 16}) {
    const PipelineMessages messages =
        pipeline_messages(pipeline(PipelineSchedule::one_f_one_b, 8, v), 64, 2);
    EXPECT_GT(messages.alone, before);
    before = messages.alone;
  }
}

}  // namespace
}  // namespace shardwise
