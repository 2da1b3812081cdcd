#include "executor/recorder/gather_records.h"

#include <gtest/gtest.h>

#include <vector>

#include "executor/comm/thread_world.h"

namespace shardwise::exec {
namespace {

/// Rank r's: two operations, the second of which ends at 10 + r, and an item of 100 + r bytes.
RankRecord record_of(int rank) {
  RankRecord record;
  record.rank = rank;
  record.clock = rank < 2 ? "this machine" : "another";
  record.arena_bytes = 1000 + rank;
  record.steady.program.operations.resize(2);
  record.steady.spans = {{1, 2, 3, 4}, {4, 4, 4, 10 + rank}};
  record.steady.items.resize(1);
  record.steady.items.front().life = {100 + rank, 0, 1};
  record.steady.seconds = 0.5 + rank;
  return record;
}

/// What rank 0 has where ranks record these.
std::vector<RankRecord> gathered(const std::vector<RankRecord>& own) {
  std::vector<RankRecord> at_first;
  AbortSignal abort;
  run_ranks(static_cast<int>(own.size()), abort, [&](World& world) {
    const std::vector<RankRecord> found =
        gather_records(world, own[static_cast<std::size_t>(world.rank())]);
    if (world.rank() == 0) {
      at_first = found;
    } else {
      EXPECT_EQ(found.size(), 1U);
    }
  });
  return at_first;
}

TEST(GatherRecords, BringsThoseOfAllRanksToTheFirst) {
  const std::vector<RankRecord> own = {record_of(0), record_of(1), record_of(2)};
  const std::vector<RankRecord> found = gathered(own);
  ASSERT_EQ(found.size(), own.size());
  for (std::size_t r = 0; r < own.size(); ++r) {
    EXPECT_EQ(found[r].rank, own[r].rank);
    EXPECT_EQ(found[r].clock, own[r].clock);
    EXPECT_EQ(found[r].arena_bytes, own[r].arena_bytes);
    EXPECT_EQ(found[r].steady.seconds, own[r].steady.seconds);
    EXPECT_EQ(found[r].steady.spans.back().end, own[r].steady.spans.back().end);
    EXPECT_EQ(found[r].steady.items.front().life.bytes, own[r].steady.items.front().life.bytes);
    EXPECT_EQ(found[r].steady.program.operations.size(), 2U);
  }
}

// A run that trained is not lost to a record that does not fit.
TEST(GatherRecords, LeavesOutWhatIsNoRecordOfTheProgram) {
  std::vector<RankRecord> own = {record_of(0), record_of(1), record_of(2), record_of(3)};
  own[1].steady.spans.pop_back();
  own[2].steady.spans.front().end = 0;  // before it begins
  const std::vector<RankRecord> found = gathered(own);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].rank, 3);
}

}  // namespace
}  // namespace shardwise::exec
