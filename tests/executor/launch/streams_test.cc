// Standard output and standard error of shardwise-run that are closed or full (D9).

#include <gtest/gtest.h>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

shardwise::test::Outcome shell(const std::string& line) {
  using namespace shardwise::test;
  return run_program("sh", {"-c", built("shardwise-run") + " " + line});
}

TEST(RunStreams, ThatAreFullOrClosedEndWithThree) {
  for (const std::string line : {"--help", "--version", "calibrate --help"}) {
    EXPECT_EQ(shell(line + " > /dev/full").exit_code, 3) << line;
    EXPECT_EQ(shell(line + " >&-").exit_code, 3) << line;
    EXPECT_EQ(shell(line + " 2>&-").exit_code, 0) << line;
  }
  for (const std::string line :
       {"", "no-plan.json", "--no-such-flag", "calibrate --ranks 0 -o x"}) {
    EXPECT_EQ(shell(line).exit_code, 2) << line;
    EXPECT_EQ(shell(line + " 2>&-").exit_code, 3) << line;
    EXPECT_EQ(shell(line + " 2> /dev/full").exit_code, 3) << line;
    EXPECT_EQ(shell(line + " >&- 2>&-").exit_code, 3) << line;
  }
}

TEST(RunStreams, ThatDoNotTakeTheStepsOfATrainingEndItWithThree) {
  const Scratch scratch;
  const std::string line = scratch.write(tiny_plan("shardwise", 1, 2, 1)) + " --steps 2";
  EXPECT_EQ(shell(line + " > /dev/full").exit_code, 3);
  EXPECT_EQ(shell(line + " >&-").exit_code, 3);
  EXPECT_EQ(shell(line + " 2>&-").exit_code, 0);
}

}  // namespace
}  // namespace shardwise::exec::test
