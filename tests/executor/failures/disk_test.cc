#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "executor/checkpoint/checkpoint_folder.h"
#include "tests/executor/failures/running_program.h"
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

// As a file system does that turns read-only at an error, while the run holds files of it open.
TEST_F(Disk, ThatTurnsReadOnlyEndsTheRunAndTheCheckpointsBeforeStay) {
  const std::string folder = scratch_.path("checkpoints");
  std::vector<std::string> words = arguments(folder, 1'000'000);
  std::string program = built("shardwise-run");
  if (::geteuid() == 0) {
    // Root without its right to write where the mode forbids it.
    if (run_program("setpriv", {"--version"}).exit_code != 0) GTEST_SKIP() << "there is no setpriv";
    words.insert(words.begin(), {"--bounding-set=-dac_override,-dac_read_search",
                                 "--inh-caps=-dac_override,-dac_read_search", program, "train"});
    program = "setpriv";
  } else {
    words.insert(words.begin(), "train");
  }
  RunningProgram run(program, words, scratch_.path("out"), scratch_.path("err"));
  while (complete_steps(folder).empty() && !run.wait(std::chrono::milliseconds(2))) {
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0555), 0);
  EXPECT_TRUE(run.wait(kLongWait)) << "the run goes on";
  EXPECT_EQ(run.exit_code(), 3);
  const std::string said = shardwise::test::bytes_of_file(scratch_.path("err"));
  EXPECT_THAT(said, AllOf(testing::StartsWith("shardwise-run: rank 0: " + folder),
                          HasSubstr("Permission denied\n")));
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  const std::vector<std::int64_t> steps = complete_steps(folder);
  ASSERT_FALSE(steps.empty());
  std::vector<std::string> rest = arguments(folder, static_cast<int>(steps.back()) + 4);
  rest.insert(rest.end(), {"--resume", "latest"});
  const Outcome done = shardwise_run(rest);
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST_F(Disk, ThatIsReadOnlyIsAProblemBeforeTheRun) {
  const std::string folder = scratch_.path("mounted");
  std::filesystem::create_directory(folder);
  if (mount("none", folder.c_str(), "tmpfs", MS_RDONLY, "size=700k") != 0) {
    GTEST_SKIP() << "nobody may mount here";
  }
  for (const std::string& each : {folder, folder + "/below"}) {
    const Outcome refused = shardwise_run(arguments(each, 2));
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, AllOf(HasSubstr(each), HasSubstr("--checkpoint-dir: "),
                                   HasSubstr("cannot be"), HasSubstr("Read-only file system")));
  }
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
