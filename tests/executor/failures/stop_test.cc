#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "executor/checkpoint/checkpoint_folder.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/models.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class Stopped : public testing::TestWithParam<Started> {
 protected:
  /// Stops a rank once a checkpoint is complete. \returns what was said; nothing when the
  /// run was over by then, as on a busy machine ranks make one another wait for that long too
  std::optional<std::string> stop_one(const Plan& plan, std::size_t stopped, int patience_s) const {
    const std::filesystem::path folder = scratch_.path("checkpoints");
    std::filesystem::remove_all(folder);
    const auto ranks = static_cast<int>(plan.layout.world());
    const auto [program, arguments] =
        command_of(GetParam(), ranks,
                   {scratch_.write(plan), "--data", "docs/memory.md", "--steps", "1000000",
                    "--checkpoint-every", "3", "--checkpoint-dir", folder, "--timeout",
                    std::to_string(patience_s)});
    RunningProgram run(program, arguments, scratch_.path("out"), scratch_.path("err"));
    while (complete_steps(folder).empty() && !run.wait(milliseconds(5))) {
    }
    const std::vector<pid_t> processes = run.children("shardwise-run");
    if (std::ssize(processes) != ranks) return std::nullopt;
    ::kill(processes[stopped], SIGSTOP);
    EXPECT_TRUE(run.wait(kLongWait));
    EXPECT_TRUE(wait_until_gone(processes, kLongWait));
    std::string said = bytes_of_file(scratch_.path("err"));
    const bool hung = said.find("does not answer") != std::string::npos;
    return hung ? std::optional(std::move(said)) : std::nullopt;
  }

  /// The same with as much patience as this machine needs. \returns the one message
  std::string one_message(const Plan& plan, std::size_t stopped) const {
    std::optional<std::string> said;
    for (int patience_s = 1; !said && patience_s < 60; patience_s *= 2) {
      said = stop_one(plan, stopped, patience_s);
    }
    if (!said) {
      ADD_FAILURE() << bytes_of_file(scratch_.path("err"));
      return "";
    }
    const std::size_t first = said->find("shardwise-run: ");
    EXPECT_NE(first, std::string::npos) << *said;
    EXPECT_EQ(said->find("shardwise-run: ", first + 1), std::string::npos) << *said;
    EXPECT_THAT(*said, ContainsRegex("waited [0-9]+ s in |none of its operations began"));
    return *said;
  }

  Scratch scratch_;
};

// A stopped process is a rank that hangs: those who wait for it say so, once, and end the job. They
// say in which collective, unless the machine is so busy that the watchdog is first.
TEST_P(Stopped, RankEndsAllWithWhatEachOfThemDoes) {
  for (const std::size_t stopped : {std::size_t{0}, std::size_t{2}}) {
    EXPECT_THAT(one_message(tiny_plan("shardwise", 3, 3, 1), stopped), HasSubstr("\nrank 1"));
  }
}

// A rank of another stage for each way of starting. Those beside it wait in a message, for it or
// for one that waits for it; unless it was stopped where a step ends, as seldom happens.
TEST_P(Stopped, StageEndsAllWithAxisAndOperation) {
  Plan plan = tiny_plan("shardwise", 0, 1, 48);
  plan.model = shardwise::test::llama(3, 32, 88, 4, 2, 256);
  plan.model.model_type = "llama";
  plan.layout.pp = 3;
  plan.cluster = *with_gpus(plan.cluster, 3);
  const std::string in_message =
      "(send|receive)_(fwd|bwd).mb[0-9]+.[0-9]+ .send_recv over pp. runs";
  std::string said;
  for (int trial = 0; trial < 6 && !std::regex_search(said, std::regex(in_message)); ++trial) {
    said = one_message(plan, static_cast<std::size_t>(GetParam()) % 3);
    EXPECT_THAT(said, HasSubstr(" over ")) << trial;
  }
  EXPECT_THAT(said, ContainsRegex(in_message));
}

// A rank of a group that shares each product, alone and with two stages: the others wait for it in
// a collective of their axis, or for one that does.
TEST_P(Stopped, RankOfATensorGroupEndsAllWithAxisAndOperation) {
  for (const std::int32_t pp : {1, 2}) {
    Plan plan = tiny_plan("shardwise", 0, 1, 2 * pp);
    plan.layout.tp = 2;
    plan.layout.pp = pp;
    plan.cluster = *with_gpus(plan.cluster, 2 * pp);
    const std::string in_group =
        "[a-z0-9_.]+ .(all_reduce|all_gather|reduce_scatter) over tp. runs";
    std::string said;
    for (int trial = 0; trial < 6 && !std::regex_search(said, std::regex(in_group)); ++trial) {
      const std::size_t stopped =
          static_cast<std::size_t>(GetParam()) + static_cast<std::size_t>(trial);
      said = one_message(plan, stopped % static_cast<std::size_t>(2 * pp));
      EXPECT_THAT(said, HasSubstr(" over ")) << trial;
    }
    EXPECT_THAT(said, ContainsRegex(in_group)) << "pp " << pp;
  }
}

/// Runs of threads and of processes, all of whose processes are stopped for a time.
class Paused : public testing::Test {
 protected:
  struct Run {
    std::unique_ptr<RunningProgram> program;
    std::string metrics;
    std::vector<pid_t> processes;
  };
  Run start(Started started, int patience_s) const {
    const std::string name = started == Started::threads ? "threads" : "processes";
    Run run;
    run.metrics = scratch_.path(name + ".jsonl");
    std::filesystem::remove(run.metrics);
    const auto [program, arguments] = command_of(
        started, 3,
        {scratch_.write(tiny_plan("shardwise", 3, 3, 1)), "--data", "docs/memory.md", "--steps",
         "1000000", "--metrics", run.metrics, "--timeout", std::to_string(patience_s)});
    run.program = std::make_unique<RunningProgram>(program, arguments, scratch_.path(name + ".out"),
                                                   scratch_.path(name + ".err"));
    return run;
  }
  static bool goes_on(Run& run, std::size_t steps) {
    const std::size_t from = losses_of(run.metrics).size();
    while (losses_of(run.metrics).size() < from + steps) {
      if (run.program->wait(milliseconds(5))) return false;
    }
    return true;
  }

  Scratch scratch_;
};

// (D17): a machine that was paused for longer than the timeout was once taken for a hang.
TEST_F(Paused, MachineIsNoHang) {
  bool went_on = false;
  // A busy machine makes ranks wait for that long too.
  for (int patience_s = 1; !went_on && patience_s < 10; patience_s *= 2) {
    std::vector<Run> runs;
    for (const Started started : {Started::threads, Started::sockets}) {
      runs.push_back(start(started, patience_s));
    }
    went_on = goes_on(runs[0], 3) && goes_on(runs[1], 3);
    runs[0].processes = {runs[0].program->process()};
    runs[1].processes = runs[1].program->children("shardwise-run");
    for (const int signal : {SIGSTOP, SIGCONT}) {
      for (const Run& run : runs) {
        for (const pid_t process : run.processes) ::kill(process, signal);
      }
      // The watchdog gives those that wait a second more.
      if (signal == SIGSTOP) std::this_thread::sleep_for(milliseconds(1000 * patience_s + 1500));
    }
    went_on = went_on && goes_on(runs[0], 200) && goes_on(runs[1], 200);
  }
  EXPECT_TRUE(went_on) << bytes_of_file(scratch_.path("threads.err"))
                       << bytes_of_file(scratch_.path("processes.err"));
}

INSTANTIATE_TEST_SUITE_P(By, Stopped, testing::ValuesIn(ways_of_processes()),
                         [](const auto& by) { return name_of(by.param); });

}  // namespace
}  // namespace shardwise::exec::test
