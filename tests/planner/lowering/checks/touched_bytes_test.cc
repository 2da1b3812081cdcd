#include "planner/lowering/checks/touched_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

/// Operations on streams, the waits of each.
StageProgram program_of(const std::vector<std::pair<Stream, std::vector<std::uint32_t>>>& ops) {
  StageProgram program;
  program.costs.resize(1);
  for (const auto& [stream, waits] : ops) {
    ProgramOp op;
    op.stream = stream;
    op.waits.begin = static_cast<std::uint32_t>(program.indices.size());
    program.indices.insert(program.indices.end(), waits.begin(), waits.end());
    op.waits.end = static_cast<std::uint32_t>(program.indices.size());
    program.operations.push_back(op);
  }
  return program;
}

// Against a value for each byte.
TEST(ByteMap, HoldsWhatEachByteHas) {
  constexpr std::int64_t kBytes = 40;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ByteMap<int> map;
    std::map<std::int64_t, int> expected;
    for (int step = 0; step < 200; ++step) {
      const auto begin = static_cast<std::int64_t>(random() % kBytes);
      const ByteRange bytes = {begin, begin + static_cast<std::int64_t>(random() % 12)};
      const int value = static_cast<int>(random() % 100);
      const auto kind = random() % 3;
      if (kind == 0) map.set(bytes, value);
      if (kind == 1) map.erase(bytes);
      if (kind == 2) map.update(bytes, [&](int& each) { each += value; });
      for (std::int64_t b = bytes.begin; b < bytes.end; ++b) {
        if (kind == 0) expected[b] = value;
        if (kind == 1) expected.erase(b);
        if (kind == 2) expected[b] += value;
      }
      std::map<std::int64_t, int> found;
      map.visit({3, kBytes + 5}, [&](const ByteRange& at, int each) {
        for (std::int64_t b = at.begin; b < at.end; ++b) {
          EXPECT_TRUE(found.emplace(b, each).second) << b;
        }
      });
      std::map<std::int64_t, int> within;
      for (const auto& [b, each] : expected) {
        if (b >= 3 && b < kBytes + 5) within.emplace(b, each);
      }
      ASSERT_EQ(found, within);
    }
  }
}

// 0 and 1 on one stream; 2 beside them; 3 beside all but after 1.
const StageProgram& example() {
  static const StageProgram kProgram = program_of({{Stream::compute, {}},
                                                   {Stream::compute, {}},
                                                   {Stream::all_gather, {}},
                                                   {Stream::reduce_scatter, {1}}});
  return kProgram;
}

TEST(TouchedBytes, NamesTheEarlierOfTwoThatNothingOrders) {
  const DependencyOrder order(example());
  TouchedBytes touched;
  EXPECT_EQ(touched.touch(order, 0, {0, 100}, true).op, kNone);
  EXPECT_EQ(touched.touch(order, 1, {0, 50}, false).op, kNone);  // after it on its stream
  const TouchedBytes::Race read = touched.touch(order, 2, {40, 60}, false);
  EXPECT_EQ(read.op, 0U);  // reads what 0 may be writing
  EXPECT_TRUE(read.writes);
  const TouchedBytes::Race beside = touched.touch(order, 2, {100, 120}, true);
  EXPECT_EQ(beside.op, kNone);  // other bytes
  const TouchedBytes::Race write = touched.touch(order, 3, {20, 130}, true);
  EXPECT_EQ(write.op, 2U);  // after 0 and 1, but not after 2
}

TEST(TouchedBytes, LetsReadersBeAndKeepsThoseThatNothingOrders) {
  const DependencyOrder order(example());
  TouchedBytes touched;
  for (const OpId reader : {0U, 2U, 1U}) {
    EXPECT_EQ(touched.touch(order, reader, {0, 10}, false).op, kNone) << reader;
  }
  const TouchedBytes::Race race = touched.touch(order, 3, {5, 6}, true);
  EXPECT_EQ(race.op, 2U);
  EXPECT_FALSE(race.writes);
  // An operation that reads, then writes the same bytes does not race with itself.
  TouchedBytes own;
  EXPECT_EQ(own.touch(order, 2, {0, 10}, false).op, kNone);
  EXPECT_EQ(own.touch(order, 2, {0, 10}, true).op, kNone);
}

}  // namespace
}  // namespace shardwise
