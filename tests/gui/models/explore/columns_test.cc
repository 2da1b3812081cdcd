#include "gui/models/explore/columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/split.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

TEST(Columns, HaveUniqueKeysThatFindThem) {
  std::set<std::string_view> keys;
  for (std::size_t c = 0; c < columns().size(); ++c) {
    EXPECT_TRUE(keys.insert(columns()[c].key).second);
    EXPECT_EQ(find_column(columns()[c].key), c);
    EXPECT_FALSE(columns()[c].meaning.empty());
  }
  EXPECT_FALSE(find_column("colour"));
}

TEST(Columns, ShowWhatARowHas) {
  LayoutRow row;
  row.layout.tp = 8;
  row.layout.recompute = Recompute::full;
  row.memory = Bytes(std::int64_t{3} << 29);
  row.time = Seconds(2);
  const Answer answer;
  const auto shown = [&](const char* key) {
    return columns()[*find_column(key)].text(priced(answer, row));
  };
  EXPECT_EQ(shown("tp"), "8");
  EXPECT_EQ(shown("recompute"), "full");
  EXPECT_EQ(shown("memory"), "1.50");
  EXPECT_EQ(shown("step"), "2.00 s");
  EXPECT_EQ(shown("cost"), "-");
  row.bound = true;
  row.mfu = 0.5;
  row.tokens_per_s = 1000;
  row.dollars_per_1e9_tokens = 2;
  EXPECT_EQ(shown("step"), "≥ 2.00 s");
  EXPECT_TRUE(shown("mfu").starts_with("≤ ")) << shown("mfu");
  EXPECT_TRUE(shown("tokens").starts_with("≤ "));
  EXPECT_TRUE(shown("cost").starts_with("≥ "));
}

TEST(RowsCsv, HasEveryFieldOfTheLayoutsAndSaysWhichTimesAreBounds) {
  Answer answer;
  answer.rows.resize(2);
  answer.rows[0].layout = test::two_node_plan().layout;
  answer.rows[1].layout = answer.rows[0].layout;
  answer.rows[1].layout.overlap_grad_reduce = false;
  answer.rows[1].bound = true;
  answer.rows[0].time = answer.rows[1].time = Seconds(1.5);
  answer.rows[0].memory = Bytes(std::int64_t{3} << 29);
  const std::vector<std::uint32_t> shown = {1, 0};
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : split_at(rows_csv(answer, shown), '\n')) {
    lines.push_back(split_at(line, ','));
  }
  ASSERT_EQ(lines.size(), 4U);  // the last is empty
  const std::vector<std::string>& head = lines[0];
  const auto cell = [&](std::size_t line, const std::string& heading) {
    const auto at = std::ranges::find(head, heading) - head.begin();
    EXPECT_LT(at, std::ssize(head)) << heading;
    return lines[line].at(static_cast<std::size_t>(at));
  };
  for (std::size_t line = 1; line <= 2; ++line) {
    ASSERT_EQ(lines[line].size(), head.size());
    Layout read;
    for (const std::string& key : layout_keys()) {
      EXPECT_EQ(set_field(read, key, cell(line, key)), "") << key;
    }
    EXPECT_EQ(read, answer.rows[shown[line - 1]].layout);
    EXPECT_EQ(cell(line, "step_s"), "1.5");
  }
  EXPECT_EQ(cell(1, "step_is_bound"), "true");
  EXPECT_EQ(cell(2, "step_is_bound"), "false");
  EXPECT_EQ(cell(2, "memory_gib"), "1.5");
  EXPECT_EQ(cell(2, "fit"), "fits");
}

// The command's table, the report and the viewer say the same of a layout.
TEST(Columns, AreThoseOfThePlan) {
  const ClusterSpec cluster = test::two_node_plan().cluster;
  sim::PlanRow planned;
  planned.cluster = &cluster;
  planned.engine = "fsdp2";
  planned.candidate.layout = test::two_node_plan().layout;
  planned.candidate.layout.recompute = Recompute::selective;
  planned.candidate.layout.micro_batch_size = 4;
  planned.candidate.cost = {{4_GiB, 5_GiB, 6_GiB, Bytes(0)}, Seconds(3)};
  planned.mfu = 0.42;
  planned.tokens_per_s = 12'345;
  planned.dollars_per_1e9_tokens = 77;
  Answer answer;
  answer.engine = planned.engine;
  LayoutRow row;
  row.layout = planned.candidate.layout;
  row.memory = planned.candidate.cost.point;
  row.upper = planned.candidate.cost.upper;
  row.time = planned.candidate.cost.step_time;
  row.mfu = planned.mfu;
  row.tokens_per_s = planned.tokens_per_s;
  row.dollars_per_1e9_tokens = planned.dollars_per_1e9_tokens;
  for (const sim::PlanColumn& each : sim::plan_columns()) {
    const std::optional<std::size_t> column = find_column(each.key);
    ASSERT_EQ(column.has_value(), each.key != "rank") << each.key;
    if (!column) continue;
    const sim::PricedLayout as_planned = sim::priced(planned);
    const sim::PricedLayout as_shown = priced(answer, row);
    EXPECT_EQ(columns()[*column].heading, each.heading);
    EXPECT_EQ(columns()[*column].text(as_shown), each.text(as_planned)) << each.key;
    const double number = each.number(as_planned);
    if (!std::isnan(number)) {
      EXPECT_EQ(columns()[*column].number(as_shown), number) << each.key;
    }
  }
}

TEST(TellingColumns, LeaveOutWhatNoRowVaries) {
  Answer answer;
  answer.rows.resize(2);
  answer.rows[1].layout.tp = 2;
  const std::vector<std::size_t> telling = telling_columns(answer);
  const auto has = [&](const char* key) {
    return std::ranges::find(telling, *find_column(key)) != telling.end();
  };
  EXPECT_TRUE(has("tp"));
  EXPECT_FALSE(has("pp"));
  EXPECT_TRUE(has("memory"));
  EXPECT_TRUE(has("step"));
}

TEST(ColumnsWithin, LeaveOutTheLeastTellingFirstAndKeepResults) {
  std::vector<std::size_t> all(columns().size());
  double width = 0;
  for (std::size_t c = 0; c < all.size(); ++c) {
    all[c] = c;
    width += columns()[c].width + 8;
  }
  EXPECT_EQ(columns_within(all, width + 50, 8, 50), all);
  std::size_t before = all.size();
  for (int tens = static_cast<int>(width + 50) / 10; tens > 0; --tens) {
    const double room = 10.0 * tens;
    const std::vector<std::size_t> shown = columns_within(all, room, 8, 50);
    EXPECT_LE(shown.size(), before);
    before = shown.size();
    for (const char* key : {"tp", "pp", "memory", "step", "mfu"}) {
      EXPECT_NE(std::ranges::find(shown, *find_column(key)), shown.end()) << key;
    }
  }
  EXPECT_EQ(before, 5U);
}

// In a window of 1280 x 800 the table has that room: what a layout does comes before the time that
// the step-time model alone says.
TEST(ColumnsWithin, HaveRoomForShardsAndRecomputeInASmallWindow) {
  std::vector<std::size_t> all;
  for (const char* key : {"tp", "cp", "pp", "vpp", "shard", "repl", "zero", "mbs", "recompute",
                          "memory", "step", "model", "mfu"}) {
    all.push_back(*find_column(key));
  }
  const std::vector<std::size_t> shown = columns_within(all, 648, 8, 92);
  for (const char* key : {"vpp", "shard", "recompute"}) {
    EXPECT_NE(std::ranges::find(shown, *find_column(key)), shown.end()) << key;
  }
  EXPECT_EQ(std::ranges::find(shown, *find_column("model")), shown.end());
}

}  // namespace
}  // namespace shardwise::view
