#include <gtest/gtest.h>

#include <fmt/format.h>

#include "simulator/clock/engine.h"
#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

/// Idle time over the ideal time m (f + b): the bubble fraction of the papers.
double hand_made_bubble(const HandMade& made, const Pipeline& shape) {
  const Timeline timeline = run_alone(representatives(made.program, made.prices));
  EXPECT_TRUE(timeline.stalled.empty());
  const double ideal = shape.microbatches * (shape.forward + shape.backward);
  return (timeline.length() - ideal) / ideal;
}

class UniformStages : public testing::TestWithParam<Pipeline> {};

// Huang et al., arXiv:1811.06965, section 2.3; Narayanan et al., arXiv:2104.04473, section 2.2.1.
TEST_P(UniformStages, IdleForPMinusOneOverM) {
  const Pipeline shape = GetParam();
  const double expected = (shape.stages - 1.0) / shape.microbatches;
  EXPECT_DOUBLE_EQ(hand_made_bubble(gpipe(shape), shape), expected);
  EXPECT_DOUBLE_EQ(hand_made_bubble(one_f_one_b(shape), shape), expected);
}

INSTANTIATE_TEST_SUITE_P(Shapes, UniformStages,
                         testing::Values(Pipeline{2, 2}, Pipeline{4, 4}, Pipeline{4, 8},
                                         Pipeline{8, 32}, Pipeline{3, 7}, Pipeline{16, 16},
                                         Pipeline{1, 5}));

class InterleavedStages : public testing::TestWithParam<Pipeline> {};

// arXiv:2104.04473, section 2.2.2: the bubble is divided by the chunks of a stage.
TEST_P(InterleavedStages, IdleForPMinusOneOverMTimesV) {
  const Pipeline shape = GetParam();
  const double expected = (shape.stages - 1.0) / (shape.microbatches * shape.vpp);
  EXPECT_DOUBLE_EQ(hand_made_bubble(one_f_one_b(shape), shape), expected);
}

INSTANTIATE_TEST_SUITE_P(Shapes, InterleavedStages,
                         testing::Values(Pipeline{2, 4, 2}, Pipeline{4, 8, 2}, Pipeline{4, 8, 4},
                                         Pipeline{8, 32, 4}, Pipeline{16, 64, 2}));

TEST(UnequalHops, LengthenTheFillOfAPipelineByEachMessageOnTheWay) {
  const Pipeline shape = {4, 1, 1, 1, 2, 0.5};
  const HandMade made = gpipe(shape);
  const Timeline timeline = run_alone(representatives(made.program, made.prices));
  // One micro-batch: four forwards, four backwards and three messages each way.
  EXPECT_DOUBLE_EQ(timeline.length(), 4 * 3.0 + 6 * 0.5);
}

}  // namespace
}  // namespace shardwise::sim
