// What the grid would show if something were wrong: defects are planted in one of two ranks or
// both.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/grid/gpu_job.h"
#include "tests/executor/support/stream_compute.h"
#include "tests/support/host_cuda/host_cuda.h"

namespace shardwise::exec::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kDefectSteps = 6;  // of a graph the last three are launches
constexpr std::int64_t kGraphStep = 3;    // that captures
constexpr std::uint64_t kOrders = 60;

Plan two_gpus(std::int8_t zero_stage) {
  Layout layout;
  layout.zero_stage = zero_stage;
  layout.dp_shard = 2;
  return on_gpus(laptop_plan("shardwise", layout, 1, true));
}

GpuRun run_of(const Plan& plan, const GpuJob& job) {
  return train_on_gpus(plan, kDefectSteps, job, stand_in_kernels(plan));
}

/// Whether some order of streams gives other losses or has the fakes say something; under the
/// thread sanitizer, whether that names a race.
void expect_found(const Plan& plan, GpuJob job, const std::string& what) {
  if (host_cuda::races_are_watched()) {
    EXPECT_EXIT(
        {
          host_cuda::exit_at_race();
          run_of(plan, job);
          std::exit(0);
        },
        testing::ExitedWithCode(host_cuda::kRaceStatus), "data race")
        << what;
    return;
  }
  const Curve right = run_of(plan, {.moves = job.moves, .steps = job.steps}).curve;
  bool found = false;
  for (job.seed = 1; job.seed <= kOrders && !found; ++job.seed) {
    const GpuRun run = run_of(plan, job);
    found = !run.complaints.empty() || !run.why.empty() || !(run.curve == right);
  }
  EXPECT_TRUE(found) << what;
}

/// Operations of a role wait for nothing.
Defect no_waits_of(OpRole role) {
  Defect defect{.rank = Defect::kEveryRank};
  defect.program = [role](StageProgram& program) {
    for (ProgramOp& op : program.operations) {
      if (op.role == role) op.waits = {};
    }
  };
  return defect;
}

// Weights are read before they are gathered; a buffer is gathered into while it is read; gradients
// leave before they are made; they are used before they are reduced.
TEST(GpuGrid, WouldShowOperationsThatDoNotWait) {
  const Plan plan = two_gpus(3);
  for (const OpRole role : {OpRole::forward, OpRole::gather, OpRole::reduce, OpRole::optimizer}) {
    for (const Steps steps : {Steps::issued, Steps::graph}) {
      for (const Moves moves : {Moves::nccl, Moves::loopback}) {
        if (moves == Moves::loopback && steps == Steps::graph) continue;
        const std::string what =
            fmt::format("{}, {} {}", name_of(role), steps == Steps::graph ? "a graph" : "issued",
                        moves == Moves::nccl ? "by NCCL" : "on one GPU");
        expect_found(plan, {.moves = moves, .steps = steps, .defect = no_waits_of(role)}, what);
      }
    }
  }
}

/// The step's last wait is left out: of the compute stream for another one's last work.
GpuJob without_last_join(const Plan& plan, Steps steps) {
  GpuJob job = {.steps = steps, .defect = {.rank = 0}};
  job.defect.step = steps == Steps::graph ? kGraphStep : 1;
  job.defect.forgotten_wait = run_of(plan, job).waits - 1;
  return job;
}

TEST(GpuGrid, WouldShowAStreamThatTheStepDoesNotJoin) {
  const Plan plan = two_gpus(1);
  expect_found(plan, without_last_join(plan, Steps::issued), "issued");
  if (host_cuda::races_are_watched()) return;  // a capture's end says it, not a race
  EXPECT_THAT(run_of(plan, without_last_join(plan, Steps::graph)).complaints,
              Contains(HasSubstr("is not joined to the capture's")));
}

/// Rank 0 issues its first two operations of a role in the other's place.
Defect swapped(OpRole role) {
  Defect defect{.rank = 0};
  defect.kernels = [role](const StageProgram& program, OpKernels& kernels) {
    std::vector<std::size_t> found;
    for (std::size_t op = 0; op < program.operations.size(); ++op) {
      if (program.operations[op].role == role) found.push_back(op);
    }
    std::swap(kernels[found[0]], kernels[found[1]]);
  };
  return defect;
}

TEST(GpuGrid, NamesCollectivesInAnotherOrder) {
  const Plan plan = two_gpus(3);
  for (const auto& [role, call] : {std::pair(OpRole::gather, "ncclAllGather"),
                                   std::pair(OpRole::reduce, "ncclReduceScatter")}) {
    const GpuRun run = run_of(plan, {.defect = swapped(role)});
    EXPECT_THAT(run.complaints,
                Contains(testing::ContainsRegex(fmt::format(
                    "^{} [0-9]+ of [a-z_]+ among ranks 0, 1: rank [01] issues {} of [0-9]+ "
                    "elements of 4 bytes, rank [01] issues {} of [0-9]+ elements",
                    call, call, call))));
    const GpuRun shared = run_of(plan, {.moves = Moves::loopback, .defect = swapped(role)});
    EXPECT_THAT(shared.why, testing::ContainsRegex(
                                "issues (all_gather|reduce_scatter) of [0-9]+ fp32 where member "
                                "[01] of its group issues (all_gather|reduce_scatter) of [0-9]+"));
  }
}

/// Reads a number of the optimizer's when its operation is issued, not when the stream comes to it.
class StaleCompute : public StreamCompute {
 public:
  void adamw(const AdamWork& work, DeviceStream& stream) override {
    const std::vector<AdamShard> shards(work.shards.begin(), work.shards.end());
    const float correction = work.step->moment_correction;
    enqueue_host(stream, "adamw", [this, shards, correction, now = work.step] {
      AdamStep step = *now;
      step.moment_correction = correction;
      DeviceStream host;  // NOLINT(misc-const-correctness): the operation takes it as its own
      cpu().adamw({.shards = shards, .step = &step}, host);
    });
  }
};

// Of a step that is issued anew the number is this step's; a graph keeps that of its capture.
TEST(GpuGrid, WouldShowAGraphThatKeepsANumberOfTheHost) {
  const Plan plan = two_gpus(2);
  Defect stale{.rank = 0};
  stale.compute = [] { return std::make_unique<StaleCompute>(); };
  const GpuRun right = run_of(plan, {.steps = Steps::graph});
  EXPECT_EQ(run_of(plan, {.steps = Steps::issued, .defect = stale}).curve, right.curve);
  const GpuRun wrong = run_of(plan, {.steps = Steps::graph, .defect = stale});
  EXPECT_TRUE(wrong.graphs);
  EXPECT_THAT(wrong.complaints, IsEmpty());
  // The launch after the capture's is the first that is wrong, and shows in no loss before the
  // next.
  EXPECT_NE(wrong.curve, right.curve);
}

}  // namespace
}  // namespace shardwise::exec::test
