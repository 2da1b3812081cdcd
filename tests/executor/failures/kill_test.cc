#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "executor/checkpoint/checkpoint_folder.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kProgram = "shardwise-run";
constexpr double kGone = 10;  // seconds in which all ranks of a run are gone, on an idle one

/// What was met over all moments, for people.
struct Met {
  int moments = 0;
  int before_a_checkpoint = 0;  // none was complete
  int in_a_checkpoint = 0;      // one was begun and not complete
  double longest_s = 0;         // until all ranks were gone
};

/// Runs that are killed at a moment of a run's whole time and go on.
class Killed : public testing::Test {
 protected:
  ~Killed() override {
    if (met_.moments == 0) return;
    fmt::print(
        "{} moments: {} before a checkpoint was complete, {} while one was written; all "
        "ranks were gone {:.2f} s later at most\n",
        met_.moments, met_.before_a_checkpoint, met_.in_a_checkpoint, met_.longest_s);
  }

  /// SHARDWISE_KILLS, or so many as every build has time for.
  static std::optional<int> asked_moments() {
    const char* const asked = std::getenv("SHARDWISE_KILLS");
    if (asked == nullptr) return std::nullopt;
    return std::atoi(asked);
  }

  /// How ranks share a model. All ways of one tp give the same losses.
  struct Split {
    int zero_stage = 0;
    std::int32_t pp = 1;
    std::int32_t tp = 1;
  };
  Split random_split(int ranks, const std::vector<std::int32_t>& stages) {
    Split split = {static_cast<int>(random_() % 4), stages[random_() % stages.size()]};
    if (ranks % split.pp != 0) split.pp = 1;
    // Below ZeRO-2 a rank adds its own micro-batches first, which is another order of sums.
    if (split.pp > 1 && split.pp < ranks) split.zero_stage = 2 + split.zero_stage % 2;
    return split;
  }

  /// Program and arguments of a run of 24 steps with a checkpoint every third one.
  std::pair<std::string, std::vector<std::string>> command(int ranks, Started started,
                                                           const Split& split,
                                                           const std::string& metrics,
                                                           const std::string& folder) const {
    const std::int32_t shared = split.pp * split.tp;
    Plan plan = tiny_plan("shardwise", split.zero_stage, ranks / shared, shared);
    plan.layout.pp = split.pp;
    plan.layout.tp = split.tp;
    plan.cluster = *with_gpus(plan.cluster, ranks);
    return command_of(started, ranks,
                      {scratch_.write(plan), "--data", "docs/memory.md", "--learning-rate", "0.01",
                       "--steps", "24", "--checkpoint-every", "3", "--checkpoint-dir", folder,
                       "--metrics", scratch_.path(metrics)});
  }
  std::string folder() const { return scratch_.path("checkpoints"); }

  /// The losses of the uninterrupted run.
  const std::vector<std::string>& whole(int ranks, std::int32_t tp) {
    std::vector<std::string>& known = whole_[{ranks, tp}];
    if (!known.empty()) return known;
    const std::string own = scratch_.path("whole");
    const auto [program, arguments] =
        command(ranks, Started::threads, {3, 1, tp}, "whole.jsonl", own);
    const Outcome done = run_program(program, arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    std::filesystem::remove_all(own);
    known = losses_of(scratch_.path("whole.jsonl"));
    return known;
  }

  /// A moment of a run: so long after it has told of so many steps, or after its start.
  struct Moment {
    std::ptrdiff_t steps = 0;
    milliseconds delay{0};
  };
  Moment random_moment() {
    const auto steps = static_cast<std::ptrdiff_t>(random_() % 25);
    // Starting takes longer than a step and its checkpoint.
    return {steps, milliseconds(random_() % (steps == 0 ? 400 : 40))};
  }
  /// \returns false when the run is over by then
  bool wait_for(const Moment& moment, RunningProgram& run) const {
    while (std::ssize(losses_of(scratch_.path("killed.jsonl"))) < moment.steps) {
      if (run.wait(milliseconds(2))) return false;
    }
    return !run.wait(moment.delay);
  }

  /// Kills the process, or one of the launcher's. Nothing is counted when the run is over by then.
  void kill_at(const Moment& moment, int ranks, Started started, const Split& split) {
    std::filesystem::remove_all(folder());
    std::filesystem::remove(scratch_.path("killed.jsonl"));
    const auto [program, arguments] = command(ranks, started, split, "killed.jsonl", folder());
    RunningProgram run(program, arguments, scratch_.path("out"), scratch_.path("err"));
    if (!wait_for(moment, run)) return;
    const bool threads = started == Started::threads;
    std::vector<pid_t> processes;
    while (!threads && std::ssize(processes) < ranks && !run.wait(milliseconds(1))) {
      processes = run.children(kProgram);
    }
    if (!threads && std::ssize(processes) < ranks) return;
    const steady_clock::time_point killed = steady_clock::now();
    if (threads) {
      run.signal(SIGKILL);
    } else {
      ::kill(processes[random_() % processes.size()], SIGKILL);
    }
    ASSERT_TRUE(run.wait(kLongWait)) << "the run went on";
    if (run.exit_code() == 0) return;
    ASSERT_TRUE(wait_until_gone(processes, kLongWait)) << "ranks went on";
    if (!threads) expect_one_message(started);
    const double took = std::chrono::duration<double>(steady_clock::now() - killed).count();
    if (asked_moments()) {
      EXPECT_LT(took, kGone);
    }
    met_.longest_s = std::max(met_.longest_s, took);
    ++met_.moments;
  }

  /// mpirun says itself that a process was killed, unless the other ranks say so before; without it
  /// one of them does, or, where they have not found one another yet, the launcher has to.
  void expect_one_message(Started started) const {
    const std::string said = bytes_of_file(scratch_.path("err"));
    if (started == Started::mpi) {
      EXPECT_THAT(said, AnyOf(HasSubstr("is gone: its process"), HasSubstr("on signal 9 (Killed)"),
                              HasSubstr("the job has been aborted")));
    }
    const std::size_t first = said.find("shardwise-run: ");
    if (first == std::string::npos) return;
    EXPECT_EQ(said.find("shardwise-run: ", first + 1), std::string::npos) << said;
    EXPECT_THAT(said, HasSubstr("is gone: its process"));
  }

  /// Goes on from the last complete checkpoint, or anew where none is, under another split: what
  /// both runs tell is the uninterrupted curve.
  void go_on(int ranks, Started started, const Split& split) {
    const std::vector<std::string>& curve = whole(ranks, split.tp);
    const std::vector<std::string> before = losses_of(scratch_.path("killed.jsonl"));
    ASSERT_LE(before.size(), curve.size());
    // The last line may have been cut.
    for (std::size_t s = 0; s + 1 < before.size(); ++s) EXPECT_EQ(before[s], curve[s]);
    const std::vector<std::int64_t> steps = complete_steps(folder());
    std::filesystem::create_directories(folder());
    const std::filesystem::directory_iterator entries(folder());
    met_.in_a_checkpoint += std::any_of(begin(entries), end(entries), [](const auto& entry) {
      return entry.path().extension() == ".partial";
    });
    met_.before_a_checkpoint += steps.empty();
    if (!steps.empty() && steps.back() == std::ssize(curve)) return;
    auto [program, arguments] = command(ranks, started, split, "resumed.jsonl", folder());
    if (!steps.empty()) arguments.insert(arguments.end(), {"--resume", "latest"});
    std::filesystem::remove(scratch_.path("resumed.jsonl"));  // of the moment before
    const Outcome done = run_program(program, arguments);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const std::size_t from = steps.empty() ? 0 : static_cast<std::size_t>(steps.back());
    EXPECT_EQ(
        losses_of(scratch_.path("resumed.jsonl")),
        std::vector<std::string>(curve.begin() + static_cast<std::ptrdiff_t>(from), curve.end()));
  }

  /// \param stages  numbers of pipeline stages, of runs that are killed
  void kill_at_moments(int count, Started started, const std::vector<int>& numbers_of_ranks,
                       const std::vector<std::int32_t>& stages = {1, 2}) {
    while (met_.moments < count && !HasFatalFailure()) {
      const int before = met_.moments;
      const int ranks = numbers_of_ranks[random_() % numbers_of_ranks.size()];
      const Moment moment = random_moment();
      const Split split = random_split(ranks, stages);
      const Split next = random_split(ranks, {1, 2});
      SCOPED_TRACE(fmt::format(
          "moment {}: {} ranks, ZeRO-{} pp {} killed {} ms after step {}, ZeRO-{} pp {} goes on",
          before, ranks, split.zero_stage, split.pp, moment.delay.count(), moment.steps,
          next.zero_stage, next.pp));
      kill_at(moment, ranks, started, split);
      if (met_.moments > before && !HasFatalFailure()) go_on(ranks, started, next);
    }
  }

  Scratch scratch_;
  std::mt19937 random_{20261121};
  std::map<std::pair<int, std::int32_t>, std::vector<std::string>> whole_;  // by ranks and tp
  Met met_;
};

TEST_F(Killed, GoesOnWithTheUninterruptedCurveAsThreads) {
  kill_at_moments(asked_moments().value_or(4), Started::threads, {1, 2, 4});
}

class KilledProcesses : public Killed, public testing::WithParamInterface<Started> {};

TEST_P(KilledProcesses, EndAllRanksAndGoOnWithTheUninterruptedCurve) {
  const std::optional<int> asked = asked_moments();
  kill_at_moments(asked.value_or(1), GetParam(), asked ? std::vector{2, 3, 4} : std::vector{2});
}

TEST_P(KilledProcesses, OfAPipelineEndAllRanksAndGoOnUnderAnotherMesh) {
  kill_at_moments(asked_moments().value_or(1), GetParam(), {4}, {2});
}

// Whether the rank that is killed, or those that wait for it, stand in a message or inside a layer.
TEST_P(KilledProcesses, OfAMeshEndAllRanksAndGoOnUnderAnotherMesh) {
  const int count = asked_moments().value_or(1);
  while (met_.moments < count && !HasFatalFailure()) {
    const int before = met_.moments;
    kill_at(random_moment(), 4, GetParam(), {0, 2, 2});
    if (met_.moments > before && !HasFatalFailure()) go_on(4, GetParam(), {3, 1, 2});
  }
}

INSTANTIATE_TEST_SUITE_P(By, KilledProcesses, testing::ValuesIn(ways_of_processes()),
                         [](const auto& by) { return name_of(by.param); });

}  // namespace
}  // namespace shardwise::exec::test
