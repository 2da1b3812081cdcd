// Calls of CUDA, cuBLASLt and NCCL in whole runs fail, one a run: each is one line that names the
// call and what it was for, exit code 3, and nothing is left (or the fakes' own exit code says
// what). Of each kind of call the first, the last and some that are drawn.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/fake_gpus/gpu_run.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int kFailed = 3;
constexpr unsigned kSeed = 14;

/// A run that calls have failed in.
struct Run {
  friend std::ostream& operator<<(std::ostream& to, const Run& run) { return to << run.name; }
  std::string name;
  Plan plan;
  std::vector<std::string> words;
  bool kernels_of_gpus = false;
  std::ptrdiff_t kinds = 0;  // of calls, at least
  int draws = 0;             // of each kind, beside the first and the last
  int steps = 3;             // few: all are recorded
};

Plan tiny(int zero_stage, int ranks) {
  Plan plan = small_plan("gpt2", DType::fp32, zero_stage, ranks);
  plan.job.sequence_length = 8;
  return plan;
}

/// Two replicas of two shards.
Plan replicated() {
  Plan plan = tiny(2, 2);
  plan.layout.dp_replicate = 2;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 4);
  plan.job.global_batch_size = 4;
  return plan;
}

std::vector<Run> runs() {
  return {{"kernels", tiny(0, 1), {}, true, 30, 0},
          {"nccl", tiny(3, 2), {"--nccl", "register_buffers=on"}, false, 28, 3, 10},
          {"replicas", replicated(), {}, false, 28, 1},
          {"one_gpu", tiny(1, 2), {"--share-gpu"}, false, 18, 3}};
}

/// What the run of a plan did, and how often each call was made.
struct Ended {
  Outcome outcome;
  std::map<std::string, int> calls;
  bool failed = false;  // the call that was to
};

class GpuCalls : public testing::TestWithParam<Run> {
 protected:
  void SetUp() override { plan_ = scratch_.write(GetParam().plan); }

  Ended end(const std::string& failing) const {
    const std::string file = scratch_.path("calls");
    std::vector<std::string> words = {"--steps", std::to_string(GetParam().steps), "--timeout",
                                      "60"};
    words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
    std::vector<std::string> environment = {"FAKE_GPU_CALLS=" + file};
    environment.emplace_back("FAKE_GPUS=4");
    if (!GetParam().kernels_of_gpus) environment.emplace_back("FAKE_GPU_KERNELS=0");
    if (!failing.empty()) environment.push_back("FAKE_GPU_FAIL=" + failing);
    Ended ended;
    ended.outcome = run_on_gpus(plan_, words, environment);
    std::ifstream lines(file);
    std::string call;
    for (int count = 0; lines >> call >> count;) ended.calls[call] = count;
    ended.failed = ended.calls["failed"] != 0;
    ended.calls.erase("failed");
    return ended;
  }

 private:
  Scratch scratch_;
  std::string plan_;
};

/// Not a piece of work of the CPU's kernels.
bool is_of_a_library(const std::string& call) {
  return call == "launch" || call.starts_with("cuda") || call.starts_with("nccl") ||
         call.starts_with("cublasLt");
}

/// Calls after which there is nothing to give up: the run has its result, or its message.
bool gives_back(const std::string& call) {
  return call.ends_with("Destroy") || call.ends_with("ExecDestroy") || call == "cudaFree" ||
         call == "cudaFreeHost" || call == "ncclCommFinalize" || call == "ncclCommDeregister" ||
         call == "ncclMemFree";
}

/// Of which the end of a device, or of NCCL, makes some.
bool may_give_back(const std::string& call) {
  return call == "cudaStreamSynchronize" || call == "ncclCommGetAsyncError";
}

/// Of a product with an epilogue, or of one algorithm of many: another is taken in its place.
/// Which calls end a run all the same, tests of plans of products show.
bool may_have_another_way(const std::string& call) { return call.starts_with("cublasLtMa"); }

/// Of the library that the call is of; one of CUDA's is this call's own.
int error_of(const std::string& call, int nth) {
  constexpr int kNcclInternalError = 3;
  constexpr int kCublasStatusInternalError = 14;
  constexpr int kCudaErrorOfTheTest = 10'000;
  if (call.starts_with("nccl")) return kNcclInternalError;
  return call.starts_with("cublasLt") ? kCublasStatusInternalError : kCudaErrorOfTheTest + nth;
}

/// What says that a call failed. In front of it stands who called, and in a step for what.
std::string said_of(const std::string& call, int nth) {
  const std::string own = fmt::format("error {} of the fake", error_of(call, nth));
  if (call == "launch") return "CUDA does not start the kernel [a-z ]+: " + own;
  if (call.starts_with("ncclGet")) return call + " of ";
  if (call == "ncclCommGetAsyncError") return call + "( of [a-z0-9_, ]+)?: internal error";
  if (call.starts_with("nccl")) return call + " of [a-z0-9_, ]+: internal error";
  return call + ": " + (call.starts_with("cuda") ? own : "");
}

/// The rank in whose step a call failed, by the message; none outside of steps.
std::optional<int> rank_in_a_step(const std::string& said) {
  const std::string_view before = "shardwise-run: rank ";
  if (!testing::Matches(ContainsRegex("^shardwise-run: rank [0-3], "))(said)) return std::nullopt;
  return said[before.size()] - '0';
}

/// What is said of a rank's last operations of NCCL begins like this.
std::string last_operations_of(int rank) { return fmt::format("\nrank {}\n  NCCL ", rank); }

void expect_said(const Ended& ended, const std::string& call, int nth, const std::string& what) {
  const std::string& said = ended.outcome.err;
  // How often ranks ask while they wait differs from run to run.
  EXPECT_TRUE(ended.failed || nth > 0) << what;
  const bool no_matter = gives_back(call) || may_have_another_way(call) ||
                         (nth > 0 && may_give_back(call)) || !ended.failed;
  if (ended.outcome.exit_code == 0 && no_matter) {
    EXPECT_EQ(said, "") << what;
    return;
  }
  EXPECT_EQ(ended.outcome.exit_code, kFailed) << what << ": " << said;
  // The thread that asks whether NCCL goes on also tells what was under way, as does a call of
  // NCCL's that fails.
  const bool tells_more = call.starts_with("nccl") || call == "cudaEventQuery";
  EXPECT_TRUE(std::ranges::count(said, '\n') == 1 || tells_more) << what << ": " << said;
  const std::optional<int> failing = rank_in_a_step(said);
  if (call.starts_with("nccl") && failing) {
    EXPECT_THAT(said, HasSubstr(last_operations_of(*failing))) << what;
    // At the first call of a kind all ranks are there. Later the others may have ended their runs:
    // the call that failed can be the last one of the job, after its collective was over.
    for (int rank = 0; rank < 2 && nth == 0; ++rank) {
      EXPECT_THAT(said, HasSubstr(last_operations_of(rank))) << what;
    }
  }
  const std::string who = "^shardwise-run: (rank [0-3](, [a-z0-9_. ]+)?: |)";
  EXPECT_THAT(said, ContainsRegex(who + said_of(call, nth))) << what;
}

TEST_P(GpuCalls, ThatFailEndTheRunWithOneLineThatNamesThem) {
  const Ended whole = end("");
  ASSERT_EQ(whole.outcome.exit_code, 0) << whole.outcome.err;
  ASSERT_EQ(whole.outcome.err, "");
  EXPECT_GE(
      std::ranges::count_if(whole.calls, is_of_a_library, [](const auto& e) { return e.first; }),
      GetParam().kinds);
  std::mt19937 random(kSeed);
  for (const auto& [call, count] : whole.calls) {
    if (!is_of_a_library(call)) continue;
    std::set<int> tried = {0};
    if (!shardwise::test::kSanitized) tried.insert(count - 1);
    for (int draw = 0; draw < GetParam().draws && !shardwise::test::kSanitized; ++draw) {
      tried.insert(static_cast<int>(random() % static_cast<unsigned>(count)));
    }
    for (const int nth : tried) {
      const Ended ended = end(fmt::format("{} {} {}", call, nth, error_of(call, nth)));
      expect_said(ended, call, nth, fmt::format("{}, call {} of {}", call, nth, count));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, GpuCalls, testing::ValuesIn(runs()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace shardwise::exec::test
