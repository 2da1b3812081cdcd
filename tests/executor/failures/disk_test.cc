#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>

#include "executor/checkpoint/checkpoint_folder.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Runs of two ranks, each of which writes 238 kB a checkpoint.
class Disk : public testing::Test {
 protected:
  std::vector<std::string> arguments(const std::string& folder, int steps) const {
    return {scratch_.write(tiny_plan("shardwise", 3, 2, 1)),
            "--data",
            "docs/memory.md",
            "--learning-rate",
            "0.01",
            "--steps",
            std::to_string(steps),
            "--metrics",
            metrics(),
            "--checkpoint-dir",
            folder,
            "--checkpoint-every",
            "2",
            "--keep",
            "1"};
  }
  std::string metrics() const { return scratch_.path("metrics.jsonl"); }

  /// The checkpoint of step 2 is the only one, and goes on as if nothing had been.
  void expect_intact(const std::string& folder) const {
    EXPECT_THAT(complete_steps(folder), ElementsAre(2));
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(folder) / partial_name(4)));
    std::filesystem::remove_all(scratch_.path("other"));  // of the run before
    ASSERT_EQ(shardwise_run(arguments(scratch_.path("other"), 6)).exit_code, 0);
    const std::vector<std::string> whole = losses_of(metrics());
    std::filesystem::remove(metrics());
    std::vector<std::string> rest = arguments(scratch_.path("other"), 6);
    rest.insert(rest.end(), {"--resume", folder, "--replace-checkpoints"});
    const Outcome done = shardwise_run(rest);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(losses_of(metrics()), std::vector<std::string>(whole.begin() + 2, whole.end()));
  }

  Scratch scratch_;
};

// A limit of the size of files stands in for a full disk where nobody may mount one.
TEST_F(Disk, IsFullAndTheCheckpointBeforeStays) {
  const std::string folder = scratch_.path("checkpoints");
  ASSERT_EQ(shardwise_run(arguments(folder, 2)).exit_code, 0);
  std::string command = "ulimit -f 100; exec " + built("shardwise-run");
  for (const std::string& each : arguments(folder, 6)) command += " " + each;
  const Outcome full = run_program("bash", {"-c", command + " --resume latest"});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, AllOf(HasSubstr("shardwise-run: rank "), HasSubstr("step-00000004.partial"),
                              HasSubstr(".safetensors: cannot be written: File too large\n")));
  expect_intact(folder);
}

TEST_F(Disk, OfASmallSizeIsFullAndTheCheckpointBeforeStays) {
  const std::string folder = scratch_.path("small");
  std::filesystem::create_directory(folder);
  if (mount("none", folder.c_str(), "tmpfs", 0, "size=700k") != 0) {
    GTEST_SKIP() << "nobody may mount here";
  }
  const Outcome full = shardwise_run(arguments(folder, 6));
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, HasSubstr("cannot be written: No space left on device\n"));
  expect_intact(folder);
  umount2(folder.c_str(), MNT_DETACH);
}

// Whoever finds it, one process says so, and what there was of the checkpoint is removed.
TEST_F(Disk, OfASmallSizeIsFullForProcessesToo) {
  for (const Started started : ways_of_processes()) {
    const std::string folder = scratch_.path("small");
    std::filesystem::create_directory(folder);
    if (mount("none", folder.c_str(), "tmpfs", 0, "size=700k") != 0) {
      GTEST_SKIP() << "nobody may mount here";
    }
    const auto [program, run] = command_of(started, 2, arguments(folder, 6));
    const Outcome full = run_program(program, run);
    EXPECT_EQ(full.exit_code, 3) << full.err;
    EXPECT_THAT(full.err, HasSubstr("cannot be written: No space left on device\n"));
    const std::size_t first = full.err.find("shardwise-run: rank ");
    EXPECT_EQ(full.err.find("shardwise-run: ", first + 1), std::string::npos) << full.err;
    expect_intact(folder);
    umount2(folder.c_str(), MNT_DETACH);
  }
}

// All of them exit with 2, and rank 0 says why.
TEST_F(Disk, ThatCannotBeWrittenIsOneProblemOfAllProcesses) {
  const std::string file = scratch_.write_bytes("file", "");
  for (const Started started : ways_of_processes()) {
    const auto [program, run] = command_of(started, 2, arguments(file, 2));
    const Outcome refused = run_program(program, run);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(refused.out, "");
    const std::string problem = "command line: --checkpoint-dir: " + file;
    const std::size_t first = refused.err.find(problem);
    ASSERT_NE(first, std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find(problem, first + 1), std::string::npos) << refused.err;
  }
}

TEST_F(Disk, ThatCannotBeWrittenIsAProblemBeforeTheRun) {
  const std::string file = scratch_.write_bytes("file", "");
  const Outcome refused = shardwise_run(arguments(file, 2));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("command line: --checkpoint-dir: " + file));
}

TEST_F(Disk, WithoutTheFolderOfAReportIsAProblemBeforeTheRun) {
  const Outcome refused = shardwise_run({scratch_.write(tiny_plan("shardwise", 0, 1, 1)),
                                         "--report", scratch_.path("none/report.json")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err,
              HasSubstr("command line: --report: " + scratch_.path("none") + " is not a folder\n"));
}

TEST_F(Disk, ThatIsFullLeavesTheReportThatWasThere) {
  const std::string report = scratch_.write_bytes("report.json", "an earlier one");
  const std::string plan = scratch_.write(tiny_plan("shardwise", 0, 1, 1));
  const Outcome full =
      run_program("bash", {"-c", "ulimit -f 1; exec " + built("shardwise-run") + " " + plan +
                                     " --steps 2 --report " + report});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, HasSubstr(report + ": cannot be written: File too large\n"));
  EXPECT_EQ(shardwise::test::bytes_of_file(report), "an earlier one");
}

TEST_F(Disk, ThatIsFullEndsARunWhoseMetricsItShouldTake) {
  const Outcome full = run_program(
      built("shardwise-run"),
      {scratch_.write(tiny_plan("shardwise", 0, 1, 1)), "--steps", "2", "--metrics", "/dev/full"});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, HasSubstr("/dev/full cannot be written"));
}

}  // namespace
}  // namespace shardwise::exec::test
