// Whose a folder of checkpoints is, as the built program has it (D8).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/folder_lock.h"
#include "executor/checkpoint/manifest.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace fs = std::filesystem;

/// Runs of a plan of two ranks with their checkpoints in one folder.
class Folder : public testing::Test {
 protected:
  Outcome run(std::vector<std::string> more, Started started = Started::threads) const {
    std::vector<std::string> arguments = {scratch_.write(plan_),
                                          "--data",
                                          "docs/memory.md",
                                          "--learning-rate",
                                          "0.01",
                                          "--metrics",
                                          scratch_.path("metrics.jsonl"),
                                          "--checkpoint-dir",
                                          folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto [program, all] = command_of(started, 2, arguments);
    return run_program(program, all);
  }
  /// Trains steps 1 and 2 with a checkpoint of each.
  void begin() const {
    const Outcome done = run({"--steps", "2", "--checkpoint-every", "1"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    ASSERT_THAT(complete_steps(folder()), ElementsAre(1, 2));
  }
  std::string folder() const { return scratch_.path("checkpoints"); }
  std::string at(std::int64_t step) const { return fs::path(folder()) / complete_name(step); }
  std::string run_of(std::int64_t step) const { return run_of_checkpoint(at(step)).value_or(""); }

  Scratch scratch_;
  Plan plan_ = tiny_plan("shardwise", 3, 2, 1);
};

// A second run's --resume latest took the first one's weights and seed.
TEST_F(Folder, KeepsTheCheckpointsOfOneRunFromAnother) {
  begin();
  const std::string first = run_of(2);
  const Outcome other = run({"--steps", "1", "--seed", "2"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.out, IsEmpty());
  EXPECT_THAT(other.err, HasSubstr(fmt::format("{}: --checkpoint-dir: has checkpoints of another "
                                               "run: run {} (steps 1, 2)\n    add --resume latest",
                                               folder(), first.substr(0, 8))));
  const Outcome replaced = run({"--steps", "1", "--seed", "2", "--replace-checkpoints"});
  EXPECT_EQ(replaced.exit_code, 0) << replaced.err;
  EXPECT_THAT(complete_steps(folder()), ElementsAre(1));
  EXPECT_NE(run_of(1), first);
  const Outcome rest = run({"--steps", "2", "--resume", "latest"});
  EXPECT_THAT(rest.out, HasSubstr(fmt::format("resuming after step 1 of run {}, written by",
                                              run_of(1).substr(0, 8))));
  EXPECT_EQ(run_of(2), run_of(1));
}

TEST_F(Folder, HasOneRunAtATime) {
  begin();
  const Result<FolderLock> lock = FolderLock::take(folder());
  ASSERT_TRUE(lock) << to_string(lock.problems());
  std::vector<Started> ways = ways_of_processes();
  ways.push_back(Started::threads);
  for (const Started started : ways) {
    const Outcome refused = run({"--steps", "3", "--resume", "latest"}, started);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(fmt::format("{}: --checkpoint-dir: is in use by "
                                                   "shardwise-run pid {} on ",
                                                   folder(), ::getpid())));
  }
  EXPECT_THAT(complete_steps(folder()), ElementsAre(1, 2));
}

// Each of these ended every start of a launcher that restarts what ends.
TEST_F(Folder, IsResumedFromItsLatestGoodCheckpointWhateverElseItHas) {
  begin();
  const fs::path all = folder();
  fs::copy(at(2), all / "step-20", fs::copy_options::recursive);
  fs::copy(at(2), at(30), fs::copy_options::recursive);
  fs::create_directory(at(99999999));
  fs::copy(at(2), at(40), fs::copy_options::recursive);
  const std::string altered = at(2) + "/rank-00001.safetensors";
  std::string bytes = bytes_of_file(altered);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch_.write_bytes(altered, bytes);
  fs::create_directory_symlink(at(1), at(50));
  const Scratch elsewhere;
  const Outcome others = run_program(shardwise::test::built("shardwise-run"),
                                     {scratch_.write(plan_), "--data", "docs/memory.md", "--steps",
                                      "60", "--checkpoint-dir", elsewhere.path("other")});
  ASSERT_EQ(others.exit_code, 0) << others.err;
  fs::copy(elsewhere.path("other") + "/step-00000060", at(60), fs::copy_options::recursive);
  std::vector<Started> ways = ways_of_processes();
  ways.push_back(Started::threads);
  for (const Started started : ways) {
    const Outcome rest = run(
        {"--steps", "3", "--resume", "latest", "--checkpoint-every", "9", "--keep", "0"}, started);
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_THAT(rest.out, HasSubstr("resuming after step 1 of run"));
    const auto skipped = [&](const fs::path& path, const std::string& why) {
      EXPECT_THAT(rest.err,
                  HasSubstr(fmt::format("shardwise-run: skipping {}: {}", path.string(), why)));
    };
    skipped(at(99999999), at(99999999) + "/manifest.json: no such file\n");
    skipped(at(60), "of run ");
    skipped(at(50), "a symbolic link, which is not followed\n");
    skipped(at(40), at(40) + "/manifest.json: /step: is 2, which is not that of its folder\n");
    skipped(all / "step-20", "not named as shardwise-run names checkpoints (step-00000020)\n");
    skipped(at(2), altered + ": /second_moment/");
    EXPECT_THAT(rest.err, Not(HasSubstr(at(1))));
    fs::remove_all(at(3));
  }
}

TEST_F(Folder, OfNoGoodCheckpointIsRefusedWithWhatIsWrong) {
  fs::create_directories(at(7));
  const Outcome refused = run({"--resume", "latest"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("skipping " + at(7) + ": " + at(7) +
                                     "/manifest.json: no "
                                     "such file\n"));
  EXPECT_THAT(refused.err, HasSubstr("--resume: " + folder() + " has no good checkpoint"));
}

// The one command line of a launcher that starts a job again when it has ended.
TEST_F(Folder, IsBegunOrResumedByTheSameCommand) {
  const Outcome begun = run({"--steps", "1", "--resume", "auto"});
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_THAT(begun.out, Not(HasSubstr("resuming")));
  const Outcome rest = run({"--steps", "2", "--resume", "auto"});
  EXPECT_THAT(rest.out, HasSubstr("resuming after step 1"));
  EXPECT_EQ(run_of(2), run_of(1));
}

// A job that is killed between its last checkpoint and its end is started again: it could once
// never end with 0, and its weights never came.
TEST_F(Folder, OfAFinishedRunGivesItsWeightsWhenTheJobIsStartedAgain) {
  const std::vector<std::string> all = {"--steps", "2", "--resume", "auto"};
  ASSERT_EQ(run(all).exit_code, 0);
  const std::string metrics = bytes_of_file(scratch_.path("metrics.jsonl"));
  for (const Started started : {Started::threads, Started::sockets}) {
    const std::string weights = scratch_.path("weights");
    std::vector<std::string> more = all;
    more.insert(more.end(), {"--save-weights", weights, "--report", scratch_.path("report.json"),
                             "--trace", scratch_.path("trace.json")});
    const Outcome again = run(more, started);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_THAT(again.out,
                ContainsRegex("run [0-9a-f]{8} has trained all 2 steps: nothing remains to train"));
    EXPECT_THAT(again.err, HasSubstr("--report " + scratch_.path("report.json") +
                                     " is not written: no step was run, so none was measured\n"));
    EXPECT_THAT(again.err, HasSubstr("--trace " + scratch_.path("trace.json")));
    EXPECT_FALSE(fs::exists(scratch_.path("report.json")));
    EXPECT_EQ(bytes_of_file(scratch_.path("metrics.jsonl")), metrics);
    EXPECT_TRUE(fs::exists(weights + "/config.json"));
    EXPECT_TRUE(fs::exists(weights + "/model.safetensors"));
    fs::remove_all(weights);
  }
  const Outcome fewer = run({"--steps", "1", "--resume", "auto"});
  EXPECT_EQ(fewer.exit_code, 2);
  EXPECT_THAT(fewer.err, HasSubstr("--steps: 1, the checkpoint has trained 2"));
}

// The target of a link called run.json was overwritten.
TEST_F(Folder, FollowsNoLinkWhereItWrites) {
  const std::string precious = scratch_.write_bytes("precious", "precious");
  fs::create_directory(folder());
  for (const char* const name : {"run.json", "lock"}) {
    const fs::path link = fs::path(folder()) / name;
    fs::remove(link);
    fs::create_symlink(precious, link);
    const Outcome refused = run({"--steps", "2"});
    EXPECT_EQ(refused.exit_code, 2) << name;
    EXPECT_THAT(refused.err, HasSubstr(link.string() + ": --checkpoint-dir: "));
    EXPECT_THAT(refused.out, Not(HasSubstr("step 1/")));
    EXPECT_EQ(bytes_of_file(precious), "precious") << name;
    fs::remove(link);
  }
  fs::create_directory(scratch_.path("elsewhere"));
  for (const char* const name : {"step-00000002", "step-00000002.partial"}) {
    fs::create_directory_symlink(scratch_.path("elsewhere"), fs::path(folder()) / name);
  }
  const Outcome done = run({"--steps", "2", "--replace-checkpoints"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(fs::is_empty(scratch_.path("elsewhere")));
  EXPECT_FALSE(fs::is_symlink(at(2)));
  const std::string weights = scratch_.path("weights");
  fs::create_directory(weights);
  for (const char* const name :
       {"config.json", "model.safetensors", "model-00001-of-00002.safetensors",
        "model.safetensors.index.json"}) {
    const fs::path link = fs::path(weights) / name;
    fs::create_symlink(precious, link);
    const Outcome refused = run({"--steps", "3", "--resume", "latest", "--save-weights", weights});
    EXPECT_EQ(refused.exit_code, 2) << name;
    EXPECT_THAT(refused.err, HasSubstr("--save-weights: " + link.string() + " is a symbolic link"));
    fs::remove(link);
  }
  EXPECT_EQ(bytes_of_file(precious), "precious");
}

// run.json and the lock of a run were replaced by its report.
TEST_F(Folder, TakesNoOutputsOfTheUsers) {
  fs::create_directory_symlink(folder(), scratch_.path("alias"));
  const std::pair<const char*, std::string> outputs[] = {
      {"--report", folder() + "/run.json"},
      {"--trace", folder() + "/step-00000002/manifest.json"},
      {"--report", folder() + "/lock"},
      {"--save-weights", folder()},
      {"--report", scratch_.path("alias/report.json")}};
  for (const bool exists : {false, true}) {
    for (const auto& [flag, path] : outputs) {
      if (exists) fs::create_directories(fs::path(folder()) / "step-00000002");
      const Outcome refused = run({"--steps", "2", flag, path});
      EXPECT_EQ(refused.exit_code, 2) << flag;
      EXPECT_THAT(refused.err, HasSubstr(path + " is in the folder of --checkpoint-dir\n"))
          << exists;
    }
  }
  const Outcome metrics = run_program(shardwise::test::built("shardwise-run"),
                                      {scratch_.write(plan_), "--checkpoint-dir", folder(),
                                       "--metrics", folder() + "/metrics.jsonl"});
  EXPECT_EQ(metrics.exit_code, 2);
  EXPECT_THAT(metrics.err, HasSubstr("metrics.jsonl is in the folder of --checkpoint-dir\n"));
  const std::string weights = scratch_.path("weights");
  const Outcome config =
      run({"--steps", "2", "--save-weights", weights, "--trace", weights + "/./config.json"});
  EXPECT_EQ(config.exit_code, 2);
  EXPECT_THAT(config.err, HasSubstr("config.json is a name of the files of --save-weights"));
}

TEST_F(Folder, KeepsLaterCheckpointsThatAnExplicitOneWouldLeaveBehind) {
  begin();
  const Outcome refused = run({"--steps", "3", "--resume", at(1)});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("has later checkpoints of this run than step 1: step 2\n"));
  const Outcome rest =
      run({"--steps", "3", "--resume", at(1), "--replace-checkpoints", "--keep", "0"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(complete_steps(folder()), ElementsAre(1, 3));
}

TEST_F(Folder, DoesNotFollowALinkInACheckpoint) {
  begin();
  const std::string file = at(2) + "/rank-00000.safetensors";
  fs::rename(file, scratch_.path("elsewhere"));
  fs::create_symlink(scratch_.path("elsewhere"), file);
  const Outcome refused = run({"--steps", "3", "--resume", at(2)});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(file + ": a symbolic link, which is not followed here"));
}

}  // namespace
}  // namespace shardwise::exec::test
