#include "planner/spec/text/one_line.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(OneLine, HasTheFirstProblemWithItsHintAndCountsTheRest) {
  EXPECT_EQ(one_line({}), "");
  const Diagnostic first{"run.json", 3, 7, "/step_time_s", "-1 is less than 0", "give seconds"};
  EXPECT_EQ(one_line({first}), "run.json:3:7: /step_time_s: -1 is less than 0 (give seconds)");
  EXPECT_EQ(one_line({first, first, first}),
            "run.json:3:7: /step_time_s: -1 is less than 0 (give seconds); … 2 more");
}

TEST(OneLine, JoinsLinesOfMessagesAndHints) {
  EXPECT_EQ(one_line({{"a", 1, 0, "", "first\n  second\n", "one\n    two\n\nthree"}}),
            "a:1: first second (one two three)");
}

TEST(OneLine, NamesNoCommandLineThatNobodyWrote) {
  EXPECT_EQ(one_line({{"command line", 0, 0, "--model", "none", ""}}), "model: none");
  EXPECT_EQ(one_line({{"", 0, 0, "--tp", "7", ""}}), "tp: 7");
  EXPECT_EQ(one_line({{"", 0, 0, "", "plain", ""}}), "plain");
}

TEST(OneLine, LetsNothingSteerTheTerminal) {
  EXPECT_EQ(one_line({{"a\x1b", 1, 0, "", "b\x07", "c\x1b"}}), "a\\u001b:1: b\\u0007 (c\\u001b)");
}

}  // namespace
}  // namespace shardwise
