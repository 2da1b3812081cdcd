#include "planner/recorded/rendezvous.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

/// A rank and an operation of it.
using Place = std::pair<std::size_t, std::uint32_t>;

/// Operations of a stage, which wait for nothing.
class Stage {
 public:
  Stage& collective(GroupKind group, bool ends = false) {
    CollectiveWork work;
    work.group = group;
    work.ends = ends;
    program_.costs.emplace_back();
    program_.costs.back().collectives.push_back(work);
    return add(-1);
  }
  Stage& kernel() {
    program_.costs.emplace_back();
    return add(-1);
  }
  Stage& message(std::int32_t number) {
    program_.costs.emplace_back();
    return add(number);
  }
  RecordedStep step() const { return {&program_, {}, 0, {}, {}}; }

 private:
  Stage& add(std::int32_t message) {
    ProgramOp op;
    op.cost = static_cast<std::int32_t>(program_.costs.size()) - 1;
    op.message = message;
    program_.operations.push_back(op);
    return *this;
  }
  StageProgram program_;
};

/// Who takes part in each rendezvous.
std::set<std::set<Place>> numbered(const Layout& layout, std::vector<RecordedStep> ranks) {
  number_rendezvous(layout, ranks);
  std::vector<std::set<Place>> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::uint32_t op = 0; op < ranks[rank].rendezvous.size(); ++op) {
      const std::uint32_t number = ranks[rank].rendezvous[op];
      if (number == kNoRendezvous) continue;
      if (number >= found.size()) found.resize(number + 1);
      found[number].emplace(rank, op);
    }
  }
  return {found.begin(), found.end()};
}

// Two replicas of two ranks: 0 and 1 shard, and so do 2 and 3; 0 and 2 hold the same shard.
TEST(NumberRendezvous, IsOneForEachGroupAndCollective) {
  Layout layout;
  layout.dp_shard = 2;
  layout.dp_replicate = 2;
  const Stage stage = Stage()
                          .collective(GroupKind::dp_shard_cp)
                          .kernel()
                          .collective(GroupKind::dp_replicate)
                          .collective(GroupKind::dp_shard_cp)
                          .collective(GroupKind::world);
  const std::vector<RecordedStep> ranks(4, stage.step());
  EXPECT_EQ(numbered(layout, ranks), (std::set<std::set<Place>>{{{0, 0}, {1, 0}},
                                                                {{2, 0}, {3, 0}},
                                                                {{0, 2}, {2, 2}},
                                                                {{1, 2}, {3, 2}},
                                                                {{0, 3}, {1, 3}},
                                                                {{2, 3}, {3, 3}},
                                                                {{0, 4}, {1, 4}, {2, 4}, {3, 4}}}));
}

// Two stages of two ranks, 0 and 1 the first: messages stay in their pipeline, the sum of a table
// that both stages have too, and a collective of all ranks is at another place of each program.
TEST(NumberRendezvous, FindsMessagesAndCollectivesOfSeveralStages) {
  Layout layout;
  layout.pp = 2;
  layout.dp_shard = 2;
  const Stage first =
      Stage().kernel().message(7).collective(GroupKind::pp, true).collective(GroupKind::world);
  const Stage last =
      Stage().message(7).collective(GroupKind::pp, true).kernel().collective(GroupKind::world);
  const std::vector<std::int64_t> pipeline = group_ranks(layout, GroupKind::pp, 0);
  ASSERT_EQ(pipeline.size(), 2U);
  const auto other = static_cast<std::size_t>(pipeline[1]);
  std::vector<RecordedStep> ranks(4, last.step());
  const std::size_t beside = other == 1 ? 2 : 1;  // of the first stage too
  ranks[0] = ranks[beside] = first.step();
  const std::size_t corner = 3;
  EXPECT_EQ(numbered(layout, ranks),
            (std::set<std::set<Place>>{{{0, 1}, {other, 0}},
                                       {{beside, 1}, {corner, 0}},
                                       {{0, 2}, {other, 1}},
                                       {{beside, 2}, {corner, 1}},
                                       {{0, 3}, {beside, 3}, {other, 3}, {corner, 3}}}));
}

}  // namespace
}  // namespace shardwise
