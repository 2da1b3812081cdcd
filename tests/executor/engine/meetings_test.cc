#include "executor/engine/meetings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/comm/thread_world.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise::exec {
namespace {

/// A kernel and a reduction over the ranks of a replica.
StageProgram program() {
  StageProgram made;
  made.costs.resize(2);
  made.costs[1].collectives.push_back({CollectiveKind::reduce_scatter, GroupKind::dp_shard_cp});
  made.operations.resize(2);
  made.operations[1].stream = Stream::reduce_scatter;
  made.operations[1].cost = 1;
  return made;
}

TEST(FindMeetings, KnowsWhenTheLastOfTheGroupWasReady) {
  Layout layout;
  layout.dp_shard = 2;
  layout.dp_replicate = 2;
  const std::vector<std::int64_t> ready = {10, 40, 30, 20};  // of the reduction, by rank
  std::vector<std::vector<OpSpan>> spans(4);
  AbortSignal abort;
  run_ranks(4, abort, [&](World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const std::int64_t mine = ready[rank];
    spans[rank] = {{1, 1, 1, 5}, {5, mine, mine, 50}};
    find_meetings(program(), layout, *world.control_group(all_ranks(world), Control::results),
                  spans[rank]);
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    std::int64_t last = 0;
    for (const std::int64_t peer :
         group_ranks(layout, GroupKind::dp_shard_cp, static_cast<std::int64_t>(rank))) {
      last = std::max(last, ready[static_cast<std::size_t>(peer)]);
    }
    EXPECT_EQ(spans[rank][0].met, 1) << rank;  // meets nobody
    EXPECT_EQ(spans[rank][1].met, last) << rank;
    EXPECT_EQ(spans[rank][1].ready, ready[rank]) << rank;
  }
}

}  // namespace
}  // namespace shardwise::exec
