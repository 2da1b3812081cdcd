#include "gui/models/columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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
  const auto shown = [&](const char* key) { return columns()[*find_column(key)].text(row); };
  EXPECT_EQ(shown("tp"), "8");
  EXPECT_EQ(shown("recompute"), "full");
  EXPECT_EQ(shown("memory"), "1.50");
  EXPECT_EQ(shown("step"), "2.00 s");
  EXPECT_EQ(shown("cost"), "-");
  row.bound = true;
  EXPECT_EQ(shown("step"), "≥ 2.00 s");
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

}  // namespace
}  // namespace shardwise::view
