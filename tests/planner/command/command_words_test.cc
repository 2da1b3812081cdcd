#include "planner/command/command_words.h"

#include <gtest/gtest.h>

#include <sstream>

#include "planner/spec/text/table.h"

namespace shardwise {
namespace {

TEST(HelpRow, WrapsTheMeaningInItsColumn) {
  EXPECT_EQ(help_row("  --tp N", "Tensor parallel", 12), "  --tp N    Tensor parallel\n");
  EXPECT_EQ(help_row("  --one-connection", "A queue", 12),
            "  --one-connection\n            A queue\n");
  EXPECT_EQ(help_row("", "A queue", 0), "A queue\n");
  EXPECT_EQ(help_row("  --tp N", "", 12), "  --tp N\n");
  EXPECT_EQ(help_row("", "", 0), "");
}

TEST(HelpRow, HasNoLineBeyondTheTerminal) {
  std::string words;
  for (int i = 0; i < 50; ++i) words += "mémoire ";
  for (const std::size_t column : {0U, 12U, 30U}) {
    std::istringstream lines(help_row("  --flag", words, column));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), kHelpWidth);
  }
}

TEST(WithoutBlankPairs, LeavesOneEmptyLine) {
  EXPECT_EQ(without_blank_pairs("a\n\n\n\nb\nc\n\nd"), "a\n\nb\nc\n\nd");
}

// What CLI11 2.1 says, and what we make of it.
TEST(PlainMistake, SaysWhatIsWrongInOurWords) {
  EXPECT_EQ(plain_mistake("--jitter: 3 is not a number from 0 to 1"),
            "--jitter: 3 is not a number from 0 to 1");
  EXPECT_EQ(plain_mistake("--host: maybe not in {on,off}"), "--host: maybe is not one of on, off");
  EXPECT_EQ(plain_mistake("--jitter requires --trials"), "--jitter needs --trials");
  EXPECT_EQ(plain_mistake("--import excludes --trials"), "--import does not go with --trials");
  EXPECT_EQ(plain_mistake("--cluster is required"), "--cluster is missing");
  EXPECT_EQ(plain_mistake("--trace: 1 required TEXT missing"), "--trace needs a value");
  EXPECT_EQ(plain_mistake("--trace: needs a value"), "--trace needs a value");
  EXPECT_EQ(plain_mistake("--tp: At Most 1 required but received 2"),
            "--tp is given more than once");
  EXPECT_EQ(plain_mistake("The following arguments were not expected: 2 --tp"),
            "unknown flag --tp");
  EXPECT_EQ(plain_mistake("a\x1b[31m\n."), "a\\u001b[31m");
}

}  // namespace
}  // namespace shardwise
