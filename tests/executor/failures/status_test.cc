// `shardwise-run status`, asked of live runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/json/reader.h"
#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using shardwise::test::shardwise_run;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Status : public testing::Test {
 protected:
  /// A run of two ranks without an end, once it has trained a step.
  void start(Started as) {
    metrics_ = scratch_.path("metrics.jsonl");
    folder_ = scratch_.path("run");
    const auto [program, arguments] =
        command_of(as, 2,
                   {scratch_.write(tiny_plan("shardwise", 3, 2, 1)), "--data", kTrainingText,
                    "--steps", "1000000", "--metrics", metrics_, "--checkpoint-dir", folder_});
    run_.emplace(program, arguments, scratch_.path("out"), scratch_.path("err"));
    while (losses_of(metrics_).empty() && !run_->wait(milliseconds(5))) {
    }
  }
  std::string process() const { return std::to_string(run_->process()); }
  /// The only job of this text of JSON.
  static JsonValue job_in(const Outcome& said) {
    const Result<JsonValue> json = parse_json(said.out, "status");
    EXPECT_TRUE(json) << said.out;
    if (!json) return {};
    EXPECT_EQ(json->find("schema")->string, "shardwise.status/1");
    EXPECT_EQ(json->find("jobs")->elements.size(), 1U) << said.out;
    return json->find("jobs")->elements.at(0);
  }

  Scratch scratch_;
  std::string metrics_;
  std::string folder_;
  std::optional<RunningProgram> run_;
};

TEST_F(Status, SaysWhatEachRankOfARunOfThreadsDoes) {
  start(Started::threads);
  const Outcome text = shardwise_run({"status", folder_});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("train " + scratch_.path("plan.json")),
                              HasSubstr("checkpoints in " + folder_),
                              HasSubstr("process " + process() + " of "), HasSubstr("/1000000")));
  const JsonValue job = job_in(shardwise_run({"status", process(), "--json"}));
  ASSERT_EQ(job.find("ranks")->elements.size(), 2U);
  bool operates = false;
  for (int i = 0; i < 50 && !operates; ++i) {
    const JsonValue now = job_in(shardwise_run({"status", process(), "--json"}));
    for (const JsonValue& rank : now.find("ranks")->elements) {
      EXPECT_EQ(rank.find("answer")->string, "given");
      EXPECT_GE(rank.find("step")->integer, 1);
      for (const JsonValue& stream : rank.find("streams")->elements) {
        operates = operates || !stream.find("operation")->string.empty();
      }
    }
  }
  EXPECT_TRUE(operates) << "no rank was ever seen in an operation";
  const Outcome list = shardwise_run({"status"});
  EXPECT_THAT(list.out, HasSubstr(job.find("job")->string.substr(0, 8)));
  run_->signal(SIGSTOP);
  const Outcome stopped = shardwise_run({"status", process()});
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_THAT(stopped.out, HasSubstr("does not answer"));
  // Its folder names it by the lock.
  const Outcome folder = shardwise_run({"status", folder_});
  EXPECT_EQ(folder.exit_code, 1) << folder.err;
  EXPECT_THAT(folder.out, AllOf(HasSubstr("a job that does not answer may be " + folder_ + "\n"),
                                HasSubstr("job " + job.find("job")->string + ", process " +
                                          process() + " of ")));
  EXPECT_EQ(job_in(shardwise_run({"status", folder_, "--json"})).find("process")->integer,
            run_->process());
  // Of a folder that no run has, and of a name that is neither a folder nor a process.
  EXPECT_EQ(shardwise_run({"status", scratch_.path("nothing")}).exit_code, 2);
}

TEST_F(Status, OfProcessesIsFoundByAnyOfThemAndNamesTheOneThatIsStopped) {
  start(Started::local);
  const std::vector<pid_t> ranks = run_->children("shardwise-run");
  ASSERT_EQ(ranks.size(), 2U);
  for (const std::string& name : {process(), std::to_string(ranks[1]), folder_}) {
    const JsonValue job = job_in(shardwise_run({"status", name, "--json"}));
    EXPECT_EQ(job.find("launcher")->integer, run_->process());
    EXPECT_EQ(job.find("ranks")->elements.size(), 2U);
  }
  ::kill(ranks[0], SIGSTOP);
  const Outcome stopped = shardwise_run({"status", process()});
  ::kill(ranks[0], SIGCONT);
  EXPECT_EQ(stopped.exit_code, 1) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("silent, before:"));
}

TEST_F(Status, OfProcessesThatAreAllStoppedIsFoundByFolderAndProcess) {
  start(Started::local);
  const std::vector<pid_t> ranks = run_->children("shardwise-run");
  ASSERT_EQ(ranks.size(), 2U);
  for (const pid_t rank : ranks) ::kill(rank, SIGSTOP);
  for (const std::string& name : {process(), std::to_string(ranks[1]), folder_}) {
    const Outcome said = shardwise_run({"status", name});
    EXPECT_EQ(said.exit_code, 1) << said.err;
    EXPECT_THAT(said.out, HasSubstr("process " + std::to_string(ranks[0]) + " of ")) << name;
  }
  for (const pid_t rank : ranks) ::kill(rank, SIGCONT);
}

TEST_F(Status, RefusesAJobThatThereIsNot) {
  // A folder that is there may be that of a silent job, which other tests may have.
  const std::filesystem::path folder = scratch_.folder() / "none";
  const Outcome none = shardwise_run({"status", folder});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("no live job is " + folder.string()));
}

}  // namespace
}  // namespace shardwise::exec::test
