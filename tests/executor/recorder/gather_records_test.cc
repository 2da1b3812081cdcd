#include "executor/recorder/gather_records.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/comm/thread_world.h"

namespace shardwise::exec {
namespace {

StepRecord step_of(int operations, std::int64_t end, std::int64_t bytes, double seconds) {
  StepRecord step;
  step.program.operations.resize(static_cast<std::size_t>(operations));
  step.spans.assign(step.program.operations.size(), {1, 2, 3, 4});
  step.spans.back().end = end;
  step.items.resize(1);
  step.items.front().life = {bytes, 0, 1};
  step.seconds = seconds;
  return step;
}

/// Rank r's: the steady step has two operations, the second of which ends at 10 + r, and an item of
/// 100 + r bytes; the first step three, to 20 + r, and 200 + r bytes.
RankRecord record_of(int rank) {
  RankRecord record;
  record.rank = rank;
  record.clock = rank < 2 ? "this machine" : "another";
  record.arena_bytes = 1000 + rank;
  record.growth_bytes = 2000 + rank;
  record.first = step_of(3, 20 + rank, 200 + rank, 1.5 + rank);
  record.steady = step_of(2, 10 + rank, 100 + rank, 0.5 + rank);
  return record;
}

/// What rank 0 has where ranks record these.
GatheredRecords gathered(const std::vector<RankRecord>& own) {
  GatheredRecords at_first;
  AbortSignal abort;
  run_ranks(static_cast<int>(own.size()), abort, [&](World& world) {
    const GatheredRecords found =
        gather_records(world, own[static_cast<std::size_t>(world.rank())]);
    if (world.rank() == 0) {
      at_first = found;
    } else {
      EXPECT_EQ(found.ranks.size(), 1U);
      EXPECT_TRUE(found.left_out.empty());
    }
  });
  return at_first;
}

TEST(GatherRecords, BringsThoseOfAllRanksToTheFirst) {
  const std::vector<RankRecord> own = {record_of(0), record_of(1), record_of(2)};
  const auto [found, left_out] = gathered(own);
  EXPECT_TRUE(left_out.empty());
  ASSERT_EQ(found.size(), own.size());
  for (std::size_t r = 0; r < own.size(); ++r) {
    EXPECT_EQ(found[r].rank, own[r].rank);
    EXPECT_EQ(found[r].clock, own[r].clock);
    EXPECT_EQ(found[r].arena_bytes, own[r].arena_bytes);
    EXPECT_EQ(found[r].growth_bytes, own[r].growth_bytes);
    for (const auto step : {&RankRecord::first, &RankRecord::steady}) {
      const StepRecord& seen = found[r].*step;
      const StepRecord& recorded = own[r].*step;
      EXPECT_EQ(seen.seconds, recorded.seconds);
      EXPECT_EQ(seen.spans.back().end, recorded.spans.back().end);
      EXPECT_EQ(seen.items.front().life.bytes, recorded.items.front().life.bytes);
      EXPECT_EQ(seen.program.operations.size(), recorded.program.operations.size());
    }
  }
}

// A run that trained is not lost to a record that does not fit, but who is missing is said.
TEST(GatherRecords, NamesTheRanksWhoseRecordsAreNotOfTheProgram) {
  std::vector<RankRecord> own;
  for (int rank = 0; rank < 5; ++rank) own.push_back(record_of(rank));
  own[1].steady.spans.pop_back();
  own[2].steady.spans.front().end = 0;  // before it begins
  own[4].first.spans.back().met = 1;    // before it is ready
  const auto [found, left_out] = gathered(own);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].rank, 3);
  ASSERT_EQ(left_out.size(), 3U);
  EXPECT_EQ(left_out[0],
            "the record of rank 1 is left out: its first and steady step have 3 and 1 operations "
            "and 1 and 1 buffers, rank 0's 3 and 2 and 1 and 1");
  EXPECT_EQ(left_out[1],
            "the record of rank 2 is left out: the moments of its operation fwd do not follow one "
            "another: 1, 2, 3, 0 ns");
  EXPECT_EQ(left_out[2],
            "the record of rank 4 is left out: the moments of its operation fwd do not follow one "
            "another: 1, 2, 1, 24 ns");
}

}  // namespace
}  // namespace shardwise::exec
