#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Command, PrintsItsVersion) {
  const Outcome outcome = shardwise({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("shardwise [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Command, HelpHasExamplesAndExitCodes) {
  const Outcome outcome = shardwise({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("shardwise plan --model"));
  EXPECT_THAT(outcome.out, HasSubstr("2 bad input or use"));
}

}  // namespace
}  // namespace shardwise::cli
