// Every combination of the data-parallel grid on fake GPUs, whose streams run in random legal
// orders: the losses of the CPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "executor/comm/loopback_world.h"
#include "planner/cost/layer/gradients_join.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/spec/plan/names.h"
#include "tests/executor/engine/data_parallel_grid.h"
#include "tests/executor/engine/plain_world.h"
#include "tests/executor/grid/gpu_job.h"
#include "tests/support/host_cuda/host_cuda.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

using testing::IsEmpty;

constexpr std::int64_t kGraphSteps = 5;  // the last two are a graph's launches
constexpr Ways kGpuWays[] = {{1, 1, false}, {2, 1, false}, {3, 1, false},
                             {4, 1, false}, {2, 2, false}, {2, 2, true}};

/// Of so many plans of the grid one is drawn: the whole grid takes half an hour, and longer under
/// sanitizers. SHARDWISE_WHOLE_GRID=1 has all of them.
const std::size_t kTried = std::getenv("SHARDWISE_WHOLE_GRID") != nullptr ? 1
                           : host_cuda::races_are_watched()               ? 13
                           : shardwise::test::kSanitized                  ? 5
                                                                          : 4;

/// A plan of the grid and its number there.
struct GridPlan {
  Plan plan;
  std::int64_t num_microbatches = 1;
  std::string name;
};

std::vector<GridPlan> grid() {
  std::vector<GridPlan> all;
  std::minstd_rand draw(1);  // so that no switch of the grid has always the same
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const Numeric& numeric : kNumerics) {
      for (const Layout& layout : layouts_of(*find_engine(name), numeric, kGpuWays)) {
        for (const std::int64_t num_microbatches : {1, 2}) {
          if (num_microbatches == 1 && !layout.reduce_every_microbatch) continue;
          Plan plan = laptop_plan(name, layout, num_microbatches, true);
          plan.job.precision = numeric.precision;
          if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) continue;
          if (draw() % kTried != 0) continue;
          const std::string what = fmt::format(
              "{} ZeRO-{} {} x {}{}, {} micro-batches, {}, fp32 gradients {}, each {}, reshard {}, "
              "double buffer {}, remainders {}",
              name, int{layout.zero_stage}, layout.dp_shard, layout.dp_replicate,
              layout.outer_shards_optimizer ? " HFSDP" : "", num_microbatches,
              name_of(numeric.precision), layout.fp32_gradients, layout.reduce_every_microbatch,
              layout.reshard_after_forward, layout.double_buffer, layout.store_param_remainders);
          all.push_back({plan, num_microbatches, what});
        }
      }
    }
  }
  return all;
}

void expect_nothing_said(const GpuRun& run, const std::string& what) {
  EXPECT_EQ(run.why, "") << what;
  EXPECT_THAT(run.complaints, IsEmpty()) << what;
  EXPECT_EQ(run.left_over, "") << what;
}

/// What the device gave is what the programs' arenas take, to the byte, and `beside` more.
void expect_arenas_alone(const GpuRun& run, std::int64_t beside, const std::string& what) {
  const std::int64_t arenas =
      std::accumulate(run.arena_bytes.begin(), run.arena_bytes.end(), std::int64_t{0});
  EXPECT_EQ(run.device_bytes, arenas + beside) << what;
}

/// Whether kernels of GPUs sum micro-batches in another order than those of CPUs: a later one's
/// gradients are added to the sum as they are made.
bool adds_to_sums(const GridPlan& each) {
  const bool tensors = each.plan.engine.gradient_buffer == GradientBuffer::copy_in;
  return !tensors && gradients_join(each.plan.layout, each.num_microbatches);
}

/// fp32 sums in another order; of bf16 gradients each addition is rounded.
double tolerance_of(const GridPlan& each) {
  return each.plan.job.precision == DType::bf16 ? 0.02 : 1e-6;
}

void expect_near(const Curve& curve, const Curve& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(curve.losses.size(), expected.losses.size()) << what;
  for (std::size_t s = 0; s < curve.losses.size(); ++s) {
    ASSERT_NEAR(curve.losses[s], expected.losses[s], tolerance * expected.losses[s]) << what;
    ASSERT_NEAR(curve.norms[s], expected.norms[s], tolerance * expected.norms[s]) << what;
  }
}

// Ranks that share a GPU sum in the order of ranks: every combination has the bits of its program
// on CPUs, and those of a CPU's program but where micro-batches are summed in another order.
TEST(GpuGrid, HasTheBitsOfTheCpuWhereRanksShareAGpu) {
  std::uint64_t seed = 0;
  for (const GridPlan& each : grid()) {
    const Steps steps = ++seed % 2 == 0 ? Steps::recorded : Steps::issued;
    const Plan plan = on_gpus(each.plan);
    const GpuRun run = train_on_gpus(
        plan, 2, {.moves = Moves::loopback, .steps = steps, .seed = seed}, stand_in_kernels(plan));
    expect_nothing_said(run, each.name);
    if (adds_to_sums(each)) {
      EXPECT_EQ(run.curve, train(plan, 2)) << each.name;
      expect_near(run.curve, train(each.plan, 2), tolerance_of(each), each.name);
    } else {
      EXPECT_EQ(run.curve, train(each.plan, 2)) << each.name;
    }
  }
  EXPECT_GT(seed, 560U / kTried);
}

/// A communicator that adds nothing into shards, as NCCL does not.
std::unique_ptr<World> without_adding(World& of) {
  return std::make_unique<PlainWorld>(
      of, CommunicatorTraits{
              .sums_in_rank_order = true, .adds_into_shard = false, .ragged_shards = true});
}

/// Captured and not, the latter in one of two ways; one of the three under sanitizers, which take
/// long. Drawn, so that no switch of the grid has always the same.
std::vector<Steps> ways_of_steps(std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const Steps not_captured = random() % 2 == 0 ? Steps::recorded : Steps::issued;
  if (!shardwise::test::kSanitized) return {Steps::graph, not_captured};
  return {random() % 3 == 0 ? not_captured : Steps::graph};
}

// NCCL's sums begin behind the owner of a piece: of two ranks they are the same.
TEST(GpuGrid, HasTheLossesOfTheCpuByNccl) {
  std::uint64_t seed = 0;
  int exact = 0;
  for (const GridPlan& each : grid()) {
    const Curve expected = train(each.plan, kGraphSteps, {}, without_adding);
    const Plan plan = on_gpus(each.plan);
    for (const Steps steps : ways_of_steps(++seed)) {
      const GpuRun run =
          train_on_gpus(plan, kGraphSteps, {.moves = Moves::nccl, .steps = steps, .seed = seed},
                        stand_in_kernels(plan));
      expect_nothing_said(run, each.name);
      expect_arenas_alone(run, 0, each.name);
      EXPECT_EQ(run.graphs, steps == Steps::graph) << each.name;
      if (each.plan.layout.dp_shard <= 2 && !adds_to_sums(each)) {
        EXPECT_EQ(run.curve, expected) << each.name;
        ++exact;
      } else {
        expect_near(run.curve, expected, tolerance_of(each), each.name);
      }
    }
  }
  // Of each plan two runs, under sanitizers one.
  EXPECT_GT(exact, (shardwise::test::kSanitized ? 200 : 640) / static_cast<int>(kTried));
}

// Steps are issued, then captured, then recorded: the same operations each time.
TEST(GpuGrid, HasTheLossesOfTheCpuByGraphsAndRecordedSteps) {
  constexpr std::int64_t kCount = 12;
  std::uint64_t seed = 0;
  for (const GridPlan& each : grid()) {
    if (each.plan.layout.dp() != 2 || ++seed % 8 != 0) continue;
    const Plan plan = on_gpus(each.plan);
    const GpuRun run = train_on_gpus(plan, kCount, {.steps = Steps::as_trained, .seed = seed},
                                     stand_in_kernels(plan));
    expect_nothing_said(run, each.name);
    EXPECT_TRUE(run.graphs) << each.name;
    const Curve expected = train(each.plan, kCount, {}, without_adding);
    if (adds_to_sums(each)) {
      expect_near(run.curve, expected, tolerance_of(each), each.name);
    } else {
      EXPECT_EQ(run.curve, expected) << each.name;
    }
    EXPECT_EQ(run.record.steady.spans.size(), run.record.steady.program.operations.size());
    EXPECT_GT(run.record.unrecorded_s, 0) << each.name;
  }
  EXPECT_GT(seed, 60U / kTried);
}

// A graph's launches draw anew too: the seed of the step is in the block that the host writes.
TEST(GpuGrid, RoundsBf16WeightsByChanceAsTheCpuDoes) {
  for (const int zero_stage : {1, 3}) {
    Layout layout;
    layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    layout.dp_shard = 2;
    Plan cpu = laptop_plan("shardwise", layout, 1, true);
    cpu.job.precision = cpu.job.main_dtype = DType::bf16;
    const Plan plan = on_gpus(cpu);
    const GpuRun run = train_on_gpus(
        plan, kGraphSteps, {.moves = Moves::nccl, .steps = Steps::graph}, stand_in_kernels(plan));
    expect_nothing_said(run, "ZeRO-" + std::to_string(zero_stage));
    EXPECT_TRUE(run.graphs);
    EXPECT_EQ(run.curve, train(cpu, kGraphSteps, {}, without_adding));
  }
}

}  // namespace
}  // namespace shardwise::exec::test
