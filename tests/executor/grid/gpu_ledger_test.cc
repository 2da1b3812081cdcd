// What ranks hold on fake GPUs, by real layers and NCCL's back end, captured and not, against the
// ledger: every phase and category, and the memory that the device gave.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "executor/recorder/measured_report.h"
#include "executor/transformer/layer.h"
#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/spec/plan/names.h"
#include "tests/executor/grid/gpu_job.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/host_cuda/host_cuda.h"

namespace shardwise::exec::test {
namespace {

using enum MemoryCategory;
using testing::IsEmpty;

constexpr std::int64_t kLedgerSteps = 8;  // of which four are issued, one of them a graph

LayerKernels layers_of(const Plan& plan) {
  LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
  shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
  return {
      [model = plan.model, shape](const LayerSpec& kind) { return make_layer(model, kind, shape); },
      [model = plan.model, shape](std::byte* tables, const Issue& to) {
        fill_tables(model, shape, tables, to);
      }};
}

/// Without what NVIDIA's libraries take themselves.
StageMemory ledger_of(const Plan& plan) {
  StageMemory said =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout)
          .stages.front();
  for (Ledger& phase : said.phases) phase[communicator] = phase[runtime_context] = 0;
  return said;
}

std::vector<Plan> plans(int ranks) {
  std::vector<Plan> all;
  for (const int zero_stage : find_engine("shardwise")->zero_stages) {
    for (const std::int64_t num_microbatches : {1, 2}) {
      for (const auto& [precision, wide] :
           {std::pair{DType::fp32, true}, {DType::bf16, true}, {DType::bf16, false}}) {
        Plan plan = on_gpus(tiny_plan("shardwise", zero_stage, ranks, num_microbatches));
        plan.job.precision = precision;
        plan.job.kernels = Kernels::planned;
        plan.layout.fp32_gradients = wide;
        if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout)) continue;
        all.push_back(plan);
      }
    }
  }
  return all;
}

// At once means one operation after the other, as the ledger counts; the arena has what streams
// need besides, and the device gave nothing but arenas.
TEST(GpuLedger, IsWhatRanksHoldToTheByte) {
  int tried = 0;
  for (const int ranks : {1, 2, 3}) {
    for (const Plan& plan : plans(ranks)) {
      if (++tried % 7 != 0 && host_cuda::races_are_watched()) continue;
      SCOPED_TRACE(fmt::format("ZeRO-{} {} on {} ranks, batch {}", int{plan.layout.zero_stage},
                               name_of(plan.job.precision), ranks, plan.job.global_batch_size));
      const GpuRun run = train_on_gpus(
          plan, kLedgerSteps, {.steps = Steps::as_trained, .seed = 7, .layers_issue = true},
          layers_of(plan));
      EXPECT_EQ(run.why, "");
      EXPECT_THAT(run.complaints, IsEmpty());
      EXPECT_TRUE(run.graphs);
      const StageMemory said = ledger_of(plan);
      const StageMemory held = measured_report(plan, std::span(&run.record, 1)).stages.front();
      for (std::size_t p = 0; p < kMemoryPhases; ++p) {
        EXPECT_EQ(held.phases[p].bytes, said.phases[p].bytes)
            << name_of(static_cast<MemoryPhase>(p));
      }
      EXPECT_EQ(run.at_once, said.peak_total().value());
      EXPECT_EQ(run.device_bytes,
                std::accumulate(run.arena_bytes.begin(), run.arena_bytes.end(), std::int64_t{0}));
    }
  }
  EXPECT_EQ(tried, 3 * 4 * 2 * 3);
}

}  // namespace
}  // namespace shardwise::exec::test
