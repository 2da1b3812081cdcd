#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::test {
namespace {

using testing::HasSubstr;

TEST(CalibrateCommand, RefusesAFolderThatIsNotThereBeforeItMeasures) {
  const Scratch scratch;
  const Outcome refused = run_program(built("shardwise-run"),
                                      {"calibrate", "-o", scratch.path("no-folder/machine.json")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no-folder is not a folder\n    create it first"));
  EXPECT_EQ(refused.out, "");
}

TEST(CalibrateCommand, RefusesMoreRanksThanMemoryHolds) {
  const Scratch scratch;
  const Outcome refused = run_program(
      built("shardwise-run"), {"calibrate", "--ranks", "1024", "-o", scratch.path("machine.json")});
  // A machine with 400 GiB would measure 1,024 ranks.
  if (refused.exit_code == 0) GTEST_SKIP() << "this machine has the memory";
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--ranks: 1024 ranks need 400 GiB to measure"));
}

TEST(CalibrateCommand, SaysWhatIsMissing) {
  const Outcome wrong = shardwise_run({"calibrate"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(
      wrong.err,
      HasSubstr("shardwise-run: --output is missing (see shardwise-run calibrate --help)\n"));
}

}  // namespace
}  // namespace shardwise::test
