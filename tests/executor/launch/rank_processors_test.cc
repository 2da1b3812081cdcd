#include "executor/launch/rank_processors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

namespace shardwise::exec {
namespace {

TEST(RankProcessors, AreEqualSharesOrEqualNumbersOfRanks) {
  for (int processors = 1; processors <= 12; ++processors) {
    std::vector<int> all;
    for (int i = 0; i < processors; ++i) all.push_back(3 + 2 * i);
    for (int ranks = 1; ranks <= 12; ++ranks) {
      std::map<int, int> uses;
      for (const int each : all) uses[each] = 0;
      std::size_t given = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<int> own = processors_of_rank(all, rank, ranks);
        given += own.size();
        for (const int each : own) {
          ASSERT_TRUE(uses.contains(each)) << "a processor that nobody has";
          ++uses[each];
        }
      }
      const bool even = processors % ranks == 0 || ranks % processors == 0;
      if (!even) {
        EXPECT_EQ(given, 0U) << ranks << " ranks on " << processors;
        continue;
      }
      for (const auto& [processor, count] : uses) {
        EXPECT_EQ(count, std::max(1, ranks / processors)) << ranks << " ranks on " << processors;
      }
    }
  }
}

TEST(RankProcessors, AreNotCutWhereNoneIsKnown) {
  EXPECT_TRUE(processors_of_rank({}, 0, 2).empty());
}

TEST(StayOn, HoldsForThreadsThatAreStartedMeanwhileAndNoLonger) {
  const std::vector<int> before = own_processors();
  ASSERT_FALSE(before.empty());
  const std::vector<int> last = {before.back()};
  {
    const StayOn place(last);
    EXPECT_EQ(own_processors(), last);
    std::vector<int> started;
    std::thread([&] { started = own_processors(); }).join();
    EXPECT_EQ(started, last);
  }
  EXPECT_EQ(own_processors(), before);
}

TEST(StayOn, LeavesAThreadWhereItIsWhenNothingIsAsked) {
  const std::vector<int> before = own_processors();
  const StayOn place({});
  EXPECT_EQ(own_processors(), before);
}

}  // namespace
}  // namespace shardwise::exec
