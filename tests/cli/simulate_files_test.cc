#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

/// A step of GPT-2 on two GPUs.
std::vector<std::string> small_step(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"simulate", "--model", "gpt2", "--cluster",
                                        "dgx-h100", "--gpus",  "2",    "--global-batch-size",
                                        "2"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

/// The same where files hold at most `blocks` of 512 bytes, which stands for a full disk.
Outcome on_a_full_disk(const char* blocks, std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"-c", R"(ulimit -f "$0"; exec "$@")", blocks,
                                        test::built("shardwise")};
  const std::vector<std::string> step = small_step(more);
  arguments.insert(arguments.end(), step.begin(), step.end());
  return test::run_program("sh", arguments);
}

std::string blocked_output(const char* name) {
  return testing::TempDir() + "simulate_files_test_" + name;
}

TEST(SimulateFiles, LeavesNoReportWhereNoneCanBeWritten) {
  const Outcome outcome = shardwise(small_step({"-o", "/dev/full"}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot be written"));
}

TEST(SimulateFiles, LeavesNoHalfTraceWhenTheDiskIsFull) {
  const std::string folder = blocked_output("full_disk");
  std::filesystem::create_directory(folder);
  const Outcome outcome = on_a_full_disk("8", {"--trace", folder + "/trace.json"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/trace.json: cannot be written"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

// The last one has a folder in its place.
TEST(SimulateFiles, LeavesNoFilesWhereNotAllCanBeWritten) {
  const std::string folder = blocked_output("chakra");
  const std::string report = blocked_output("beside_chakra.json");
  std::filesystem::create_directories(folder + "/comm_groups.json");
  const Outcome outcome = shardwise(small_step({"--chakra", folder, "-o", report}));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/comm_groups.json: cannot be written: Is a directory"));
  std::filesystem::remove(folder + "/comm_groups.json");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_FALSE(std::filesystem::exists(report));
  std::filesystem::remove(folder);
}

TEST(SimulateFiles, LeavesNoFolderWhenTheDiskIsFull) {
  const std::string folder = blocked_output("full_disk_for_chakra");
  const Outcome outcome = on_a_full_disk("1", {"--chakra", folder + "/of/ranks"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/of/ranks/step.0.et: cannot be written"));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// The report is written beside its place, then the trace waits for a reader that never comes.
TEST(SimulateFiles, LeavesNoPartsWhenASignalEndsIt) {
  const std::string folder = blocked_output("ended");
  std::filesystem::create_directory(folder);
  std::vector<std::string> arguments = {
      "-c",
      R"(cd "$0"; mkfifo trace; "$@" -o report.json --trace trace & id=$!
         until ls report.json.*.part > list 2> /dev/null || ! kill -0 $id; do :; done; rm list
         kill -s TERM $id; wait $id)",
      folder, test::built("shardwise")};
  const std::vector<std::string> step = small_step({});
  arguments.insert(arguments.end(), step.begin(), step.end());
  const Outcome outcome = test::run_program("sh", arguments);
  EXPECT_EQ(outcome.exit_code, 128 + 15) << outcome.err;
  std::filesystem::remove(folder + "/trace");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(SimulateFiles, RefusesOneNameForTwoFiles) {
  const std::string file = blocked_output("one_name.json");
  const Outcome outcome = shardwise(small_step({"-o", file, "--trace", file}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--trace: " + file + " is the same file as --output"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(SimulateFiles, RefusesAFolderForATrace) {
  for (const std::vector<std::string>& arguments :
       {small_step({"--import", "tests"}), {"compare", "tests", "tests"}}) {
    const Outcome outcome = shardwise(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("tests: a folder, not a file"));
  }
}

}  // namespace
}  // namespace shardwise::cli
