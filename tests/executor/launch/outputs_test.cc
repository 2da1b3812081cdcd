// What shardwise-run writes: links, inputs, standard output (D12, D13).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

namespace fs = std::filesystem;
using shardwise::test::built;
using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::HasSubstr;

TEST(RunOutputs, AreNoInputs) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 1, 2, 1));
  const std::string before = bytes_of_file(plan);
  const std::string text = scratch.write_bytes("text", std::string(4096, 'x'));
  fs::create_hard_link(text, scratch.path("same"));
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
      {{"--report", plan}, "--report: " + plan + " is the same file as the input PLAN"},
      {{"--trace", plan}, "--trace: " + plan + " is the same file as the input PLAN"},
      {{"--data", text, "--metrics", scratch.path("same")},
       "--metrics: " + scratch.path("same") + " is the same file as the input --data"},
      {{"--report", scratch.path("r"), "--trace", scratch.path("./r")},
       "--trace: " + scratch.path("./r") + " is the same file as --report"}};
  for (const auto& [more, message] : lines) {
    std::vector<std::string> words = {plan, "--steps", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = shardwise_run(words);
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  EXPECT_EQ(bytes_of_file(plan), before);
  EXPECT_EQ(bytes_of_file(text), std::string(4096, 'x'));
}

TEST(RunOutputs, ToStandardOutputAreAllOfIt) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 1, 2, 1));
  const Outcome report = shardwise_run({plan, "--steps", "1", "--report", "-"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_TRUE(nlohmann::json::accept(report.out)) << report.out.substr(0, 200);
  EXPECT_THAT(report.err, HasSubstr("step 1/1"));
  const Outcome metrics = shardwise_run({plan, "--steps", "1", "--metrics", "-"});
  EXPECT_EQ(metrics.exit_code, 0) << metrics.err;
  EXPECT_THAT(metrics.out, testing::MatchesRegex("\\{\"schema\".*\\}\n\\{\"step\":0.*\\}\n"));
  EXPECT_FALSE(fs::exists("-"));
}

TEST(RunOutputs, LeaveLinksAsTheyAre) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 1, 2, 1));
  const std::string target = scratch.write_bytes("t", "old");
  fs::create_symlink("t", scratch.path("l"));
  EXPECT_EQ(shardwise_run({plan, "--steps", "1", "--report", scratch.path("l")}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(scratch.path("l")));
  EXPECT_TRUE(nlohmann::json::accept(bytes_of_file(target)));
}

// --metrics once waited for a reader without end, and was taken for a collective that hung.
TEST(RunOutputs, IntoPipesNeedAReader) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 1, 2, 1));
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Outcome alone = shardwise_run({plan, "--steps", "1", "--metrics", pipe, "--timeout", "60"});
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_THAT(alone.err, HasSubstr(pipe + ": cannot be written: no program reads this pipe"));
  const Outcome read = run_program(
      "bash", {"-c", "cat \"$3\" & \"$1\" \"$2\" --steps 1 --metrics \"$3\" > /dev/null; wait",
               "run", built("shardwise-run"), plan, pipe});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("{\"step\":0,\"loss\":"));
}

}  // namespace
}  // namespace shardwise::exec::test
