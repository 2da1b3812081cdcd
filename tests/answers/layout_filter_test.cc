#include "answers/layout_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/scratch.h"

namespace shardwise::sim {
namespace {

/// A row with a layout of its own.
struct Row : PricedLayout {
  explicit Row(std::int32_t tp, double seconds = 1, double share = 1, Fit verdict = Fit::fits) {
    own.tp = tp;
    own.sequence_parallel = tp > 1;
    layout = &own;
    step = model = Seconds(seconds);
    mfu = share;
    fit = verdict;
    memory = 40_GiB;
    engine = "megatron_ddp";
    gpus = 64;
    rank = 3;
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  Layout own;
};

bool keeps(const std::string& text, const PricedLayout& tested) {
  const ParsedFilter parsed = parse_filter(text);
  EXPECT_EQ(parsed.problem, "") << text;
  return parsed.filter.keeps(tested);
}

TEST(Filter, ComparesEachColumnAsItsOperatorSays) {
  const Row tested(8, 2, 0.45);
  for (const char* yes : {"",
                          "tp<=8",
                          "tp>=8",
                          "tp=8",
                          "tp:8",
                          "tp==8",
                          "tp<9",
                          "tp>7",
                          "tp!=4",
                          "mfu>40",
                          "mfu<45.5",
                          "step<3",
                          "memory=40",
                          "rank<=3",
                          "gpus=64",
                          "dp:1",
                          "shard>=1",
                          "recompute:none",
                          "recompute:-",
                          "recompute!=full",
                          "engine:megatron",
                          "engine=megatron_ddp",
                          "engine!=megatron",
                          "settings:none",
                          "cost!=1"}) {
    EXPECT_TRUE(keeps(yes, tested)) << yes;
  }
  for (const char* no :
       {"tp<8", "tp>8", "tp!=8", "tp:4", "mfu>45.1", "step>=2.1", "memory<40", "recompute:full",
        "recompute!=none", "engine=megatron", "engine:fsdp", "rank>3", "cost<1e9", "cost>0"}) {
    EXPECT_FALSE(keeps(no, tested)) << no;
  }
}

TEST(Filter, KeepsRowsThatMeetEveryCondition) {
  EXPECT_TRUE(keeps("  tp<=8   mfu>40 ", Row(8, 2, 0.45)));
  EXPECT_FALSE(keeps("tp<=8 mfu>40", Row(16, 2, 0.45)));
  EXPECT_FALSE(keeps("tp<=8 mfu>40", Row(8, 2, 0.35)));
}

TEST(Filter, FindsAPartOfWordsByAColon) {
  Row tested(8);
  tested.own.recompute = Recompute::selective;
  tested.own.offload_optimizer = true;
  for (const char* yes : {"recompute:selective", "recompute:sel", "settings:host",
                          "settings:optimizer settings!=none", "recompute!=none"}) {
    EXPECT_TRUE(keeps(yes, tested)) << yes;
  }
  for (const char* no : {"recompute=sel", "settings=host", "settings:-", "recompute:Selective"}) {
    EXPECT_FALSE(keeps(no, tested)) << no;
  }
}

TEST(Filter, KnowsWordsForFitAndFront) {
  const std::vector<std::pair<Fit, std::string>> words = {
      {Fit::fits, "fits"}, {Fit::at_risk, "risk"}, {Fit::does_not_fit, "over"}};
  for (const auto& [fit, its_word] : words) {
    const Row tested(1, 1, 1, fit);
    for (const auto& [other, word] : words) {
      EXPECT_EQ(keeps(word, tested), fit == other) << word;
      EXPECT_EQ(keeps("!" + word, tested), fit != other) << word;
    }
  }
  Row front(1);
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
  EXPECT_EQ(problem("recompute"), "recompute needs a value, as recompute:none");
  EXPECT_EQ(problem("recompute="), "recompute needs a value, as recompute:none");
  EXPECT_EQ(problem("recompute<full"), "recompute is a word: use recompute:… or recompute!=…");
  EXPECT_EQ(problem("tp!8"), "tp!8: use < <= > >= = != or :");
  EXPECT_EQ(problem("!"), " is no column");
  EXPECT_EQ(problem("fit"), "fit is no column (did you mean fits?)");
}

TEST(Filter, KeepsTheConditionsBeforeAWrongOne) {
  const ParsedFilter parsed = parse_filter("tp:8 xyzzy");
  EXPECT_NE(parsed.problem, "");
  EXPECT_TRUE(parsed.filter.keeps(Row(8, 1, 1)));
  EXPECT_FALSE(parsed.filter.keeps(Row(4, 1, 1)));
}

TEST(Filter, HasAllItsWordsInTheDocs) {
  const std::string page = test::bytes_of_file("docs/viewer.md");
  const std::size_t begin = page.find("## Filter words");
  ASSERT_NE(begin, std::string::npos);
  const std::string words = page.substr(begin, page.find("\n## ", begin) - begin);
  const auto has = [&](std::string_view key) {
    return words.find(fmt::format("`{}`", key)) != std::string::npos ||
           words.find(fmt::format("`{}:", key)) != std::string::npos;
  };
  for (const PlanColumn& each : plan_columns()) EXPECT_TRUE(has(each.key)) << each.key;
  for (const PlanTrait& each : plan_traits()) EXPECT_TRUE(has(each.key)) << each.key;
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
}  // namespace shardwise::sim
