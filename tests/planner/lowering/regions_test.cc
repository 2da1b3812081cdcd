// Passes of layers, cut where ranks meet inside them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/lowering/lower_regions.h"
#include "planner/lowering/price.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

Plan shared_plan(const std::string& engine, Recompute recompute, bool sequence_parallel,
                 std::int64_t chunk = 0) {
  Layout layout;
  layout.tp = 2;
  layout.sequence_parallel = sequence_parallel;
  layout.recompute = recompute;
  Plan plan = small_plan(*find_engine(engine), layout, 2, 2);
  plan.job.loss = LossKernel::chunked;
  plan.job.loss_chunk_rows = chunk;
  EXPECT_TRUE(check_layout(plan.model, plan.cluster, plan.job, plan.engine, layout).empty());
  return plan;
}

/// A pass as its operations: "2" a region of two kernels, "all_reduce" a collective.
std::string pass(const StageProgram& stage, OpRole role, std::int32_t layer) {
  std::string text;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != role || op.layer != layer || op.microbatch != 0) continue;
    const CollectiveWork* const work = stage.communication(op);
    EXPECT_EQ(op.stream, work == nullptr ? Stream::compute : Stream::tensor_parallel);
    EXPECT_TRUE(work == nullptr || work->group == GroupKind::tp);
    if (!text.empty()) text += " | ";
    text += work == nullptr                            ? "region"
            : work->kind == CollectiveKind::all_reduce ? "all-reduce"
            : work->kind == CollectiveKind::all_gather ? "all-gather"
                                                       : "reduce-scatter";
  }
  return text;
}

/// Seconds of all operations, one after the other.
double sum(const Plan& plan, const StepProgram& program) {
  const std::vector<std::vector<Seconds>> prices = price(plan, program);
  double all = 0;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (const ProgramOp& op : program.stages[s].operations) {
      all += prices[s][static_cast<std::size_t>(op.cost)].value();
    }
  }
  return all;
}

/// Seconds of the last collective of every recompute and what follows it, kernel by kernel.
double end_of_recomputes(const Plan& plan) {
  const StepProgram kernels = lower(plan, Granularity::kernel);
  const StageProgram& stage = kernels.stages.front();
  const std::vector<Seconds> prices = price(plan, kernels).front();
  double all = 0;
  double behind = 0;
  bool open = true;  // the collective is still to come, from the end
  for (std::size_t i = stage.operations.size(); i-- > 0;) {
    const ProgramOp& op = stage.operations[i];
    if (op.role != OpRole::recompute) {
      open = true;
      behind = 0;
      continue;
    }
    if (!open) continue;
    behind += prices[static_cast<std::size_t>(op.cost)].value();
    if (stage.communication(op) == nullptr) continue;
    all += behind;
    open = false;
  }
  return all;
}

TEST(Regions, EndWhereRanksMeet) {
  const Plan plan = shared_plan("shardwise", Recompute::full, false, 512);
  const StageProgram stage = lower_regions(plan).stages.front();
  EXPECT_EQ(pass(stage, OpRole::forward, 0), "region | all-reduce");
  EXPECT_EQ(pass(stage, OpRole::forward, 1), "region | all-reduce | region | all-reduce");
  EXPECT_EQ(pass(stage, OpRole::recompute, 1), "region | all-reduce | region");
  EXPECT_EQ(pass(stage, OpRole::backward, 1), "region | all-reduce | region | all-reduce | region");
  EXPECT_EQ(pass(stage, OpRole::forward, 3), "region");
  // 1,024 tokens in chunks of 512.
  EXPECT_EQ(pass(stage, OpRole::backward, 3),
            "region | all-gather | region | all-gather | region | all-reduce | region");
  EXPECT_EQ(problems_of(lower_regions(plan)), "");
}

// A recompute leaves out the sum of what nobody reads.
TEST(Regions, TakeTheTimeOfTheirLayer) {
  for (const char* engine : {"shardwise", "megatron_ddp"}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      for (const bool sequence_parallel : {false, true}) {
        for (const std::int64_t chunk : {0, 512}) {
          Plan plan = shared_plan(engine, recompute, sequence_parallel, chunk);
          plan.job.tp_overlap = TpOverlap::none;
          const StepProgram layers = lower(plan);
          const StepProgram regions = lower_regions(plan);
          double left_out = 0;
          if (recompute == Recompute::full) {
            left_out = end_of_recomputes(plan);
            EXPECT_GT(left_out, 0);
          }
          EXPECT_NEAR(sum(plan, regions) + left_out, sum(plan, layers), 1e-9 * sum(plan, layers))
              << engine << ", recompute " << static_cast<int>(recompute)
              << (sequence_parallel ? ", sequence parallel" : "") << ", chunk " << chunk;
        }
      }
    }
  }
}

// Nothing changes where no rank meets another inside a layer.
TEST(Regions, AreLayersWithoutSuchAxes) {
  Layout layout;
  layout.dp_shard = 4;
  layout.zero_stage = 3;
  layout.pp = 2;
  const Plan plan = small_plan(*find_engine("shardwise"), layout, 2);
  const StepProgram layers = lower(plan);
  const StepProgram regions = lower_regions(plan);
  ASSERT_EQ(regions.stages.size(), layers.stages.size());
  for (std::size_t s = 0; s < layers.stages.size(); ++s) {
    const StageProgram& a = layers.stages[s];
    const StageProgram& b = regions.stages[s];
    ASSERT_EQ(a.operations.size(), b.operations.size());
    EXPECT_EQ(a.indices, b.indices);
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
      EXPECT_EQ(name_of(a, a.operations[i]), name_of(b, b.operations[i]));
      EXPECT_EQ(a.operations[i].cost, b.operations[i].cost);
    }
  }
}

}  // namespace
}  // namespace shardwise::test
