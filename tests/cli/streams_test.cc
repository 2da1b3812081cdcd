// Standard output and standard error that are closed or full end with exit code 3 (D9).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

/// The command in a shell, with its redirections.
Outcome in_shell(const std::string& line) {
  return test::run_program("sh", {"-c", test::built("shardwise") + " " + line});
}

const std::string kEstimate = "estimate --model gpt2 --cluster dgx-h100 --engine fsdp2";

TEST(StandardOutput, ThatIsFullEndsWithThree) {
  test::Scratch scratch;
  const std::string report = scratch.path("report.json");
  ASSERT_EQ(in_shell(kEstimate + " --json > " + report).exit_code, 0);
  for (const std::string& line : std::vector<std::string>{
           "--help", "--version", "plan --help", "list models", "list models --json", kEstimate,
           kEstimate + " --json", "simulate " + kEstimate.substr(9),
           "plan --model gpt2 --cluster laptop --engine shardwise --gpus 1",
           "compare " + report + " " + report, "score examples/public.jsonl",
           "size --model gpt2 --tokens 1e9 --days 30 --cluster dgx-h100",
           "fit --gpu h100-sxm --residuals"}) {
    const Outcome full = in_shell(line + " > /dev/full");
    EXPECT_EQ(full.exit_code, 3) << line;
    EXPECT_EQ(full.err, "shardwise: standard output cannot be written: No space left on device\n")
        << line;
    const Outcome closed = in_shell(line + " >&-");
    EXPECT_EQ(closed.exit_code, 3) << line;
    EXPECT_EQ(closed.err, "shardwise: standard output cannot be written: Bad file descriptor\n")
        << line;
  }
}

TEST(StandardOutput, ThatIsClosedIsNotGivenToAFile) {
  test::Scratch scratch;
  const std::string report = scratch.path("report.json");
  EXPECT_EQ(in_shell("simulate --model gpt2 --cluster dgx-h100 --engine fsdp2 -o " + report +
                     " >&- 2>&- <&-")
                .exit_code,
            3);
  EXPECT_EQ(test::bytes_of_file(report).substr(0, 2), "{\n");
  EXPECT_THAT(test::bytes_of_file(report), testing::EndsWith("}\n"));
}

TEST(StandardError, ThatIsClosedOrFullEndsWithThree) {
  for (const std::string& line : std::vector<std::string>{
           "nope", "estimate --model none --cluster laptop", "compare a b --tolerance nan",
           "plan --no-such-flag", "score no-such.jsonl", "simulate no-such-plan.json"}) {
    EXPECT_EQ(in_shell(line).exit_code, 2) << line;
    EXPECT_EQ(in_shell(line + " 2>&-").exit_code, 3) << line;
    EXPECT_EQ(in_shell(line + " 2> /dev/full").exit_code, 3) << line;
    EXPECT_EQ(in_shell(line + " >&- 2>&-").exit_code, 3) << line;
  }
}

TEST(StandardError, MayBeClosedWhenThereIsNothingToSay) {
  EXPECT_EQ(in_shell("list engines 2>&-").exit_code, 0);
  EXPECT_EQ(in_shell("--help 2>&-").exit_code, 0);
  EXPECT_EQ(in_shell("list engines <&-").exit_code, 0);
}

// As of every filter: `shardwise list models | head -1`.
TEST(StandardOutput, ThatNobodyReadsEndsTheCommandSilently) {
  const Outcome outcome = test::run_program(
      "bash", {"-c", "set -o pipefail; " + test::built("shardwise") + " list models | true"});
  EXPECT_THAT(outcome.exit_code, testing::AnyOf(0, 141));  // 128 + SIGPIPE
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace shardwise::cli
