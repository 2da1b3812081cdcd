// Ranks on two hosts, which are two networks of this machine with a cable between them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kTwoHosts = "tests/executor/support/two_hosts.sh";
constexpr int kNotAllowed = 77;

class TwoHosts : public testing::Test {
 protected:
  std::vector<std::string> arguments(int steps, const std::string& metrics) const {
    return {built("shardwise-run"),
            scratch_.write(tiny_plan("shardwise", 3, 2, 1)),
            "--data",
            "docs/memory.md",
            "--steps",
            std::to_string(steps),
            "--metrics",
            scratch_.path(metrics)};
  }
  std::vector<std::string> started(int steps, const std::string& metrics) const {
    std::vector<std::string> all = arguments(steps, metrics);
    all.insert(all.begin(), name_);
    return all;
  }
  void cut_the_cable() const {
    EXPECT_EQ(run_program("ip", {"-n", name_ + "-1", "link", "set", "cable", "down"}).exit_code, 0);
  }

  /// Cuts the cable when some steps are done. \returns what was said; nothing when the run was over
  /// by then, as on a busy machine ranks make one another wait for that long too
  std::optional<std::string> cut(int patience_s) const {
    std::vector<std::string> all = started(1'000'000, "cut.jsonl");
    all.insert(all.end(), {"--timeout", std::to_string(patience_s)});
    RunningProgram run(kTwoHosts, all, scratch_.path("out"), scratch_.path("err"));
    while (losses_of(scratch_.path("cut.jsonl")).size() < 3 && !run.wait(milliseconds(5))) {
    }
    if (run.wait(milliseconds(0))) return std::nullopt;
    const std::vector<pid_t> processes = run.children("shardwise-run");
    cut_the_cable();
    EXPECT_TRUE(run.wait(kLongWait));
    EXPECT_TRUE(wait_until_gone(processes, kLongWait));
    EXPECT_EQ(run.exit_code(), 3);
    std::string said = bytes_of_file(scratch_.path("err"));
    const bool hung = said.find("does not answer") != std::string::npos;
    return hung ? std::optional(std::move(said)) : std::nullopt;
  }

  Scratch scratch_;
  std::string name_ = fmt::format("shardwise-{}", ::getpid());
};

TEST_F(TwoHosts, GiveTheLossesOfThreads) {
  const Outcome there = run_program(kTwoHosts, started(6, "there.jsonl"));
  if (there.exit_code == kNotAllowed) GTEST_SKIP() << "nobody may make networks here";
  ASSERT_EQ(there.exit_code, 0) << there.err;
  std::vector<std::string> here = arguments(6, "here.jsonl");
  here.erase(here.begin());
  ASSERT_EQ(shardwise_run(here).exit_code, 0);
  const std::vector<std::string> losses = losses_of(scratch_.path("there.jsonl"));
  EXPECT_EQ(losses.size(), 6);
  EXPECT_EQ(losses, losses_of(scratch_.path("here.jsonl")));
}

// The word at the start is said by rank 0 alone.
TEST_F(TwoHosts, MeetWithoutASecretOnlyWhereTheUserSaysSo) {
  std::vector<std::string> all = started(1, "insecure.jsonl");
  all.insert(all.begin(), {"SHARDWISE_INSECURE=1", kTwoHosts});
  const Outcome met = run_program("env", all);
  if (met.exit_code == kNotAllowed) GTEST_SKIP() << "nobody may make networks here";
  EXPECT_EQ(met.exit_code, 0) << met.err;
  EXPECT_EQ(met.err,
            "SHARDWISE_INSECURE=1: there is no secret, and any process that reaches 10.77.0.1, "
            "ports 29501 to 29516, can join this job\n");
}

// Either side sees that the other does not answer, and nobody can tell both: each says so once.
TEST_F(TwoHosts, EndWithAMessageEachWhereTheCableIsCut) {
  if (run_program(kTwoHosts, {name_, "true"}).exit_code == kNotAllowed) {
    GTEST_SKIP() << "nobody may make networks here";
  }
  std::optional<std::string> said;
  for (int patience_s = 2; !said && patience_s < 60; patience_s *= 2) said = cut(patience_s);
  ASSERT_TRUE(said) << bytes_of_file(scratch_.path("err"));
  std::vector<std::string> messages;
  constexpr const char* kBegin = "shardwise-run: ";
  for (std::size_t at = said->find(kBegin); at != std::string::npos;) {
    const std::size_t next = said->find(kBegin, at + 1);
    messages.push_back(said->substr(at, next - at));
    at = next;
  }
  ASSERT_EQ(messages.size(), 2) << *said;
  for (const std::string& each : messages) {
    EXPECT_THAT(each, AllOf(ContainsRegex("waited [0-9]+ s in |none of its operations began"),
                            HasSubstr("does not answer")));
  }
}

}  // namespace
}  // namespace shardwise::exec::test
