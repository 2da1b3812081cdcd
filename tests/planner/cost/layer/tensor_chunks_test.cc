#include "planner/cost/layer/tensor_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Places worked out by hand from build_data_parallel_buffer_index(); the goldens of
// engine_goldens_test hold whole models to what it returns.

constexpr std::int64_t kAnyChunk = std::numeric_limits<std::int64_t>::max();

TensorChunks chunks(std::vector<ChunkedTensor> tensors) {
  return tensor_chunks(std::move(tensors), kAnyChunk);
}

std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const TensorChunks& of) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const BufferGap& gap : of.gaps) result.emplace_back(gap.begin, gap.end);
  return result;
}

TEST(TensorChunks, TensorsOfWholeChunksHaveNoGaps) {
  const TensorChunks of = chunks({{16, 4, 3}, {4, 1, 1}});
  EXPECT_EQ(of.chunk, 4);
  EXPECT_EQ(of.length, 52);
  EXPECT_THAT(gaps(of), IsEmpty());
  EXPECT_EQ(of.padded(3), 60);
}

TEST(TensorChunks, AChunkIsWholeRowsOfAllButTensorsSmallerThanIt) {
  EXPECT_EQ(chunks({{24, 4, 1}, {24, 6, 1}}).chunk, 12);
  EXPECT_EQ(chunks({{24, 4, 1}, {24, 6, 1}, {10, 5, 1}}).chunk, 30);
  EXPECT_EQ(chunks({{4, 4, 1}, {24, 6, 1}}).chunk, 6);
  EXPECT_EQ(chunks({}).padded(8), 0);
}

TEST(TensorChunks, ATensorThatEndsInsideAChunkLeavesAGap) {
  const TensorChunks of = chunks({{20, 4, 1}, {24, 6, 1}});  // the longer rows come first
  EXPECT_THAT(gaps(of), ElementsAre(Pair(44, 48)));
  EXPECT_EQ(of.length, 48);
}

TEST(TensorChunks, ALaterTensorEndsInTheChunkWhereItFits) {
  const TensorChunks of = chunks({{24, 6, 1}, {20, 4, 1}, {28, 4, 1}});
  EXPECT_EQ(of.length, 72);
  EXPECT_THAT(gaps(of), IsEmpty());
  const TensorChunks apart = chunks({{24, 6, 1}, {20, 4, 2}});  // 8 and 8 of 12
  EXPECT_THAT(gaps(apart), ElementsAre(Pair(44, 48), Pair(68, 72)));
}

TEST(TensorChunks, SmallTensorsFillGapsAndFollowAtTheEnd) {
  const TensorChunks of = chunks({{24, 6, 1}, {20, 4, 1}, {5, 1, 1}, {3, 1, 1}});
  EXPECT_THAT(gaps(of), ElementsAre(Pair(47, 48)));
  EXPECT_EQ(of.length, 53);
}

TEST(TensorChunks, AChunkIsNoLongerThanItMayBeUnlessARowIs) {
  EXPECT_EQ(tensor_chunks({{700, 7, 1}, {1100, 11, 1}, {1300, 13, 1}}, 500).chunk, 500);
  EXPECT_EQ(tensor_chunks({{700, 7, 1}}, 5).chunk, 7);
}

TEST(LackingElements, AreThoseOfTheRankWithTheLeastOfThem) {
  const TensorChunks one = chunks({{24, 6, 1}, {20, 4, 1}});  // a gap at the very end
  LackingElements end(2);
  end.add(one, one.padded(2), 5);
  EXPECT_EQ(end.of_fullest(), 0);
  const TensorChunks two = chunks({{24, 6, 1}, {20, 4, 2}});  // 44 to 48 and 68 to 72
  LackingElements both(2);
  both.add(two, two.padded(2), 5);
  EXPECT_EQ(two.padded(2), 72);
  EXPECT_EQ(both.of_fullest(), 0);  // both are of the second rank
  both.add(one, one.padded(2), 3);
  EXPECT_EQ(both.of_fullest(), 0);
  const TensorChunks early = chunks({{20, 4, 1}, {28, 4, 0}, {24, 12, 1}, {24, 6, 1}, {20, 4, 1}});
  EXPECT_THAT(gaps(early), ElementsAre(Pair(68, 72), Pair(92, 96)));
  LackingElements four(4);
  four.add(early, early.padded(4), 2);
  EXPECT_EQ(four.of_fullest(), 0);  // 24 each: the first two are full
}

TEST(LackingElements, CountGapsOfAllBuffersRankByRank) {
  // Chunks of 12: a gap of 4 in each second one, so one for each of two ranks.
  const TensorChunks two = chunks({{12, 12, 1}, {20, 4, 1}, {32, 4, 1}});
  EXPECT_THAT(gaps(two), ElementsAre(Pair(32, 36), Pair(68, 72)));
  LackingElements lacking(2);
  lacking.add(two, 72, 1);
  EXPECT_EQ(lacking.of_fullest(), 4);
  lacking.add(two, 72, 2);
  EXPECT_EQ(lacking.of_fullest(), 12);
}

TEST(LackingElements, AreOfTheFirstRankWhereItsPieceIsLongerThanTheBuffer) {
  const TensorChunks small = chunks({{7, 7, 1}, {5, 5, 1}});  // 12 of chunks of 7
  ASSERT_EQ(small.padded(1), 14);
  LackingElements lacking(2);
  lacking.add(small, small.padded(2), 1);
  EXPECT_EQ(lacking.of_fullest(), 0);
  LackingElements alone(2);
  alone.add(small, 2 * 28, 3);
  EXPECT_EQ(alone.of_fullest(), 3 * (28 - 12));
}

}  // namespace
}  // namespace shardwise
