// The columns of ranked layouts.
#include "answers/plan_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class PlanColumns : public testing::Test {
 protected:
  PlanColumns() { cluster_.gpus = 16; }

  PlanRow row(std::int32_t tp, double seconds) const {
    PlanRow made;
    made.candidate.layout.tp = tp;
    made.candidate.layout.dp_shard = 16 / tp;
    made.candidate.layout.sequence_parallel = tp > 1;
    made.candidate.layout.zero_stage = 1;
    made.candidate.cost.step_time = Seconds(seconds);
    made.candidate.cost.needed = made.candidate.cost.point = 40_GiB;
    made.candidate.cost.upper = 44_GiB;
    made.cluster = &cluster_;
    made.engine = "fsdp2";
    made.mfu = 0.4321;
    made.tokens_per_s = 123'000;
    return made;
  }
  static std::vector<std::string_view> keys(const ToldColumns& told) {
    std::vector<std::string_view> found;
    for (const PlanColumn* each : told.columns) found.push_back(each->key);
    return found;
  }

 private:
  ClusterSpec cluster_;
};

TEST_F(PlanColumns, HaveOneKeyEach) {
  std::set<std::string_view> found;
  for (const PlanColumn& each : plan_columns()) {
    EXPECT_TRUE(found.insert(each.key).second) << each.key;
    EXPECT_EQ(find_plan_column(each.key), &each);
    EXPECT_EQ(each.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), std::string_view::npos);
  }
  EXPECT_EQ(find_plan_column("none"), nullptr);
  for (const PlanTrait& each : plan_traits()) {
    EXPECT_TRUE(found.insert(each.key).second) << each.key;
    EXPECT_FALSE(each.meaning.empty()) << each.key;
  }
}

// A number is in its unit: with the text's digits, or the text has none.
TEST_F(PlanColumns, GiveNumberAndTextOfTheSameThing) {
  PlanRow one = row(4, 2.5);
  one.simulated = Seconds(3.5);
  const auto number = [&](std::string_view key) {
    return find_plan_column(key)->number(priced(one));
  };
  const auto text = [&](std::string_view key) { return find_plan_column(key)->text(priced(one)); };
  EXPECT_EQ(number("step"), 3.5);
  EXPECT_EQ(number("model"), 2.5);
  EXPECT_NEAR(number("mfu"), 43.21, 1e-9);
  EXPECT_EQ(text("mfu"), "43.2 %");
  EXPECT_EQ(number("memory"), 40);
  EXPECT_EQ(text("memory"), "40.00");
  EXPECT_EQ(number("upper"), 44);
  EXPECT_EQ(number("tp"), 4);
  EXPECT_EQ(text("tp"), "4");
  EXPECT_TRUE(std::isnan(number("cost")));
  EXPECT_EQ(text("cost"), "-");
  one.dollars_per_1e9_tokens = 100;
  EXPECT_EQ(number("cost"), 100);
  one.candidate.layout.dp_replicate = 2;
  one.candidate.layout.dp_shard = 2;
  EXPECT_EQ(number("dp"), 4);
  EXPECT_EQ(text("dp"), "2 x 2");
  for (const PlanColumn& each : plan_columns()) {
    const bool unordered = each.key == "engine" || each.key == "settings";
    EXPECT_EQ(each.words, unordered || each.key == "recompute");
    EXPECT_FALSE(each.meaning.empty()) << each.key;
    if (unordered) {
      EXPECT_TRUE(std::isnan(each.number(priced(one)))) << each.key;
    }
  }
}

TEST_F(PlanColumns, TellTheRankAndWhetherItIsTied) {
  PlanRow one = row(4, 2.5);
  const PlanColumn& rank = *find_plan_column("rank");
  EXPECT_EQ(rank.text(priced(one, 2)), "2");
  EXPECT_EQ(rank.number(priced(one, 2)), 2);
  EXPECT_EQ(rank.text(priced(one)), "-");
  EXPECT_TRUE(std::isnan(rank.number(priced(one))));
  one.tied = true;
  EXPECT_EQ(rank.text(priced(one, 1)), "1=");
}

TEST_F(PlanColumns, KnowFitAndFrontInAnAnswer) {
  PlanAnswer answer;
  answer.usable = 42_GiB;
  answer.front = {row(2, 1)};
  const PlanRow other = row(4, 2.5);
  const auto holding = [](const PricedLayout& priced) {
    std::vector<std::string_view> keys;
    for (const PlanTrait& each : plan_traits()) {
      if (each.holds(priced)) keys.push_back(each.key);
    }
    return keys;
  };
  EXPECT_THAT(holding(priced(answer.front[0], 1, answer)), ElementsAre("risk", "front"));
  answer.usable = 44_GiB;
  EXPECT_THAT(holding(priced(other, 2, answer)), ElementsAre("fits"));
  answer.usable = 39_GiB;
  EXPECT_THAT(holding(priced(other, 0, answer)), ElementsAre("over"));
}

TEST_F(PlanColumns, TellWhatDiffersAndSayTheRestOnce) {
  const ToldColumns told = told_columns(std::vector{row(2, 1), row(4, 2)}, false);
  EXPECT_THAT(keys(told), ElementsAre("step", "mfu", "memory", "tp", "dp"));
  EXPECT_TRUE(told.in_all.empty());  // ZeRO 1 is what 1 says everywhere

  PlanRow first = row(2, 1);
  PlanRow second = row(4, 2);
  for (PlanRow* each : {&first, &second}) {
    each->candidate.layout.zero_stage = 3;
    each->candidate.layout.offload_optimizer = true;
  }
  first.simulated = Seconds(1.1);
  const ToldColumns more = told_columns(std::vector{first, second}, true);
  EXPECT_THAT(keys(more), ElementsAre("step", "model", "mfu", "memory", "engine", "tp", "dp"));
  EXPECT_THAT(more.in_all, ElementsAre("ZeRO 3", "optimizer on host"));
}

TEST_F(PlanColumns, TellOfOneRowWhatIsNotOne) {
  const ToldColumns told = told_columns(std::vector{row(4, 1)}, false);
  EXPECT_THAT(keys(told), Contains("tp"));
  EXPECT_THAT(keys(told), Not(Contains("pp")));
  EXPECT_THAT(keys(told), Not(Contains("upper")));
  EXPECT_THAT(told.in_all, IsEmpty());
}

TEST_F(PlanColumns, MarkEstimatesBesideSimulatedSteps) {
  PlanAnswer answer;
  answer.best = {row(4, 2.5), row(2, 2.6)};
  const auto step = [&](std::size_t i) {
    return find_plan_column("step")->text(priced(answer.best[i], i + 1, answer));
  };
  EXPECT_EQ(step(1), "2.60 s");
  answer.best.front().simulated = Seconds(2.8);
  EXPECT_EQ(step(0), "2.80 s");
  EXPECT_EQ(step(1), "~ 2.60 s");
}

}  // namespace
}  // namespace shardwise::sim
