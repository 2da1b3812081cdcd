// The columns of ranked layouts.
#include "simulator/planning/plan_columns.h"

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
    made.candidate.cost.point = 40_GiB;
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
}

// A number is in its unit: with the text's digits, or the text has none.
TEST_F(PlanColumns, GiveNumberAndTextOfTheSameThing) {
  PlanRow one = row(4, 2.5);
  one.simulated = Seconds(3.5);
  const auto number = [&](std::string_view key) { return find_plan_column(key)->number(one); };
  const auto text = [&](std::string_view key) { return find_plan_column(key)->text(one); };
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
    EXPECT_EQ(each.words, each.key == "engine" || each.key == "settings");
    if (each.words) {
      EXPECT_TRUE(std::isnan(each.number(one))) << each.key;
    }
  }
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

}  // namespace
}  // namespace shardwise::sim
