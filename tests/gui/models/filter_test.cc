#include "gui/models/filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardwise::view {
namespace {

LayoutRow row(std::int32_t tp, double seconds, double mfu, Fit fit = Fit::fits) {
  LayoutRow made;
  made.layout.tp = tp;
  made.time = Seconds(seconds);
  made.mfu = mfu;
  made.fit = fit;
  made.memory = 40_GiB;
  return made;
}

bool keeps(const std::string& text, const LayoutRow& tested) {
  const ParsedFilter parsed = parse_filter(text);
  EXPECT_EQ(parsed.problem, "") << text;
  return parsed.filter.keeps(tested);
}

TEST(Filter, ComparesEachColumnAsItsOperatorSays) {
  const LayoutRow tested = row(8, 2, 0.45);
  for (const char* yes :
       {"", "tp<=8", "tp>=8", "tp=8", "tp:8", "tp==8", "tp<9", "tp>7", "tp!=4", "mfu>40",
        "mfu<45.5", "step<3", "memory=40", "recompute:none", "recompute:-", "recompute!=full"}) {
    EXPECT_TRUE(keeps(yes, tested)) << yes;
  }
  for (const char* no : {"tp<8", "tp>8", "tp!=8", "tp:4", "mfu>45.1", "step>=2.1", "memory<40",
                         "recompute:full", "recompute!=none"}) {
    EXPECT_FALSE(keeps(no, tested)) << no;
  }
}

TEST(Filter, KeepsRowsThatMeetEveryCondition) {
  EXPECT_TRUE(keeps("  tp<=8   mfu>40 ", row(8, 2, 0.45)));
  EXPECT_FALSE(keeps("tp<=8 mfu>40", row(16, 2, 0.45)));
  EXPECT_FALSE(keeps("tp<=8 mfu>40", row(8, 2, 0.35)));
}

TEST(Filter, KnowsWordsForFitAndFront) {
  const std::vector<std::string> words = {"fits", "risk", "over"};
  for (std::size_t fit = 0; fit < words.size(); ++fit) {
    for (std::size_t word = 0; word < words.size(); ++word) {
      const LayoutRow tested = row(1, 1, 1, static_cast<Fit>(fit));
      EXPECT_EQ(keeps(words[word], tested), fit == word);
      EXPECT_EQ(keeps("!" + words[word], tested), fit != word);
    }
  }
  LayoutRow front = row(1, 1, 1);
  EXPECT_FALSE(keeps("front", front));
  front.front = true;
  EXPECT_TRUE(keeps("front", front));
}

TEST(Filter, SaysWhatIsWrong) {
  const auto problem = [](const char* text) { return parse_filter(text).problem; };
  EXPECT_EQ(problem("tpp<8"), "tpp is no column (did you mean tp?)");
  EXPECT_EQ(problem("tp<"), "tp: nothing is not a number");
  EXPECT_EQ(problem("tp<=eight"), "tp: eight is not a number");
  EXPECT_EQ(problem("tp"), "tp needs a value, as tp<=8");
  EXPECT_EQ(problem("recompute<full"), "recompute is a word: use recompute:… or recompute!=…");
  EXPECT_EQ(problem("tp!8"), "tp!8: use < <= > >= = != or :");
  EXPECT_EQ(problem("!"), " is no column");
  EXPECT_EQ(problem("fit"), "fit is no column (did you mean fits?)");
}

TEST(Filter, KeepsTheConditionsBeforeAWrongOne) {
  const ParsedFilter parsed = parse_filter("tp:8 xyzzy");
  EXPECT_NE(parsed.problem, "");
  EXPECT_TRUE(parsed.filter.keeps(row(8, 1, 1)));
  EXPECT_FALSE(parsed.filter.keeps(row(4, 1, 1)));
}

TEST(Filter, ReadsAnyBytes) {
  for (int seed = 0; seed < 256; ++seed) {
    std::string text;
    for (int i = 0; i < 64; ++i) text.push_back(static_cast<char>((seed * 31 + i * i * 7) % 256));
    (void)parse_filter(text);
    (void)parse_filter("tp" + text);
  }
}

}  // namespace
}  // namespace shardwise::view
