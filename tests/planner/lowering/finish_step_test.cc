#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "planner/cost/collectives/collective.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

/// The reductions and kernels of `finalize` on a stage, as "finalize.1 all_reduce pp 64".
std::vector<std::string> finalize_of(const StageProgram& stage) {
  std::vector<std::string> found;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != OpRole::finalize) continue;
    std::string text = name_of(stage, op);
    const OpCost& cost = stage.costs[static_cast<std::size_t>(op.cost)];
    for (const CollectiveWork& work : cost.collectives) {
      text += " " + std::string(name_of(work.kind)) + " " + std::to_string(work.bytes);
    }
    found.push_back(text);
  }
  return found;
}

using Lines = std::vector<std::string>;

Layout sharded_pipeline(std::int32_t tp, std::int32_t pp) {
  Layout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp_shard = 2;
  layout.zero_stage = 1;
  return layout;
}

// 4 blocks of two norms of 512 and the norm before the head, fp32 gradients.
TEST(FinalizeGradients, SumsNormsOverTpUnderSequenceParallelism) {
  Plan plan = small_plan(megatron_ddp(), sharded_pipeline(2, 1), 1, 4);
  EXPECT_EQ(finalize_of(lower(plan).stages[0]), Lines{});
  plan.layout.sequence_parallel = true;
  EXPECT_EQ(finalize_of(lower(plan).stages[0]), Lines{"finalize.0 all_reduce 18432"});
}

// 2 norms of head_dim 64 a block: the heads of each tp rank add to their gradients, with sequence
// parallelism or without (finalize_model_grads.py: sequence_parallel or qk_layernorm).
TEST(FinalizeGradients, SumsTheNormsOfHeadsOverTpInAnyCase) {
  Plan plan = small_plan(megatron_ddp(), sharded_pipeline(2, 1), 1, 4);
  for (LayerSpec& kind : plan.model.kinds) {
    if (kind.role != LayerRole::block) continue;
    for (const char* name : {"model.layers.{layer}.self_attn.q_norm.weight",
                             "model.layers.{layer}.self_attn.k_norm.weight"}) {
      ParameterSpec norm;
      norm.name = name;
      norm.shape = {64};
      kind.parameters.push_back(norm);
    }
  }
  EXPECT_EQ(finalize_of(lower(plan).stages[0]), Lines{"finalize.0 all_reduce 2048"});
}

// The head of the last stage uses the table of the first: 32000 x 512 of fp32.
TEST(FinalizeGradients, SumsTheTiedTableOverFirstAndLastStageAlone) {
  Plan plan = small_plan(megatron_ddp(), sharded_pipeline(1, 4), 4, 8);
  plan.model = gpt(8, 512, 8, 32000);
  ASSERT_TRUE(plan.model.tie_word_embeddings);
  const StepProgram program = lower(plan);
  EXPECT_EQ(finalize_of(program.stages[0]), Lines{"finalize.1 all_reduce 65536000"});
  EXPECT_EQ(finalize_of(program.stages[1]), Lines{});
  EXPECT_EQ(finalize_of(program.stages[3]), Lines{"finalize.1 all_reduce 65536000"});
}

// 8 experts in each of 4 blocks, a count of 4 bytes each, over all ranks of the stage; then the
// bias moves.
TEST(FinalizeGradients, CountsTheTokensOfExpertsThatABiasBalances) {
  Plan plan = small_plan(megatron_ddp(), sharded_pipeline(1, 1), 1, 4);
  plan.model = mixture(4, 512, 8, 8, 2, 512, 256);
  EXPECT_EQ(finalize_of(lower(plan).stages[0]), Lines{});
  std::int64_t layers = 0;
  for (LayerSpec& kind : plan.model.kinds) {
    const bool routes = std::ranges::count(kind.operations, OpKind::router, &OperationSpec::kind);
    if (!routes) continue;
    ParameterSpec bias;
    bias.name = "model.layers.{layer}.mlp.gate.e_score_correction_bias";
    bias.shape = {8};
    bias.trainable = false;
    kind.parameters.push_back(bias);
    layers +=
        std::ranges::count(plan.model.layers, static_cast<int>(&kind - plan.model.kinds.data()));
  }
  const Lines expected = {"finalize.2 all_reduce " + std::to_string(layers * 8 * 4), "finalize.3"};
  EXPECT_EQ(finalize_of(lower(plan).stages[0]), expected);
  EXPECT_EQ(problems_of(lower(plan)), "");
}

TEST(FinalizeGradients, DividesByTheTokensOfTheBatchInMegatronsOrder) {
  Plan plan = small_plan(megatron_ddp(), sharded_pipeline(2, 2), 2, 4);
  plan.layout.sequence_parallel = true;
  plan.job.calculate_per_token_loss = true;
  const StepProgram program = lower(plan);
  EXPECT_EQ(problems_of(program), "");
  for (const StageProgram& stage : program.stages) {
    const Lines lines = finalize_of(stage);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_TRUE(lines[0].starts_with("finalize.0 all_reduce"));
    EXPECT_EQ(lines[1], "finalize.4 broadcast 4");
    EXPECT_EQ(lines[2], "finalize.5 all_reduce 4");
    EXPECT_EQ(lines[3], "finalize.6");
  }
}

/// Bytes of one kind that the optimizer of a rank moves.
double optimizer_bytes(const StageProgram& stage, MoveKind kind) {
  double bytes = 0;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != OpRole::optimizer) continue;
    for (const KernelWork& work : stage.costs[static_cast<std::size_t>(op.cost)].kernels) {
      if (work.move == kind) bytes += work.bytes;
    }
  }
  return bytes;
}

// Ranks that hold the same gradients share their squares out (RankState::squares): over all ranks
// each element is read once, 4 bytes, in every way of sharding.
TEST(Optimizer, SquaresEveryGradientOnceOverAllRanksOfOurExecutor) {
  for (const std::int8_t stage : std::initializer_list<std::int8_t>{0, 1, 2, 3}) {
    for (const int replicas : {1, 2}) {
      Layout layout;
      layout.dp_shard = 2;
      layout.dp_replicate = replicas;
      layout.zero_stage = stage;
      const Plan plan = small_plan(shardwise_engine(), layout, 1, 4);
      const StageProgram program = lower(plan).stages[0];
      std::int64_t elements = 0;
      for (const int kind : plan.model.layers) {
        for (const ParameterSpec& p : plan.model.kinds[static_cast<std::size_t>(kind)].parameters) {
          elements += p.elements();
        }
      }
      const double all = static_cast<double>(elements);
      EXPECT_NEAR(optimizer_bytes(program, MoveKind::gradient_norm) * 2 * replicas, 4 * all, 1)
          << "ZeRO-" << static_cast<int>(stage) << " x " << replicas;
      // Gradient read; weight and moments read and written; bf16 weights written.
      const double updated = all / (stage == 0 ? 1 : 2);
      EXPECT_NEAR(optimizer_bytes(program, MoveKind::optimizer), 30 * updated, 1);
    }
  }
}

// Both halves of a main weight are read and written, one of which is the bf16 weight.
TEST(Optimizer, MovesTwoBytesAnElementLessWhereItUpdatesRemainders) {
  const auto bytes = [](bool remainders) {
    Layout layout;
    layout.dp_shard = 2;
    layout.zero_stage = 1;
    layout.store_param_remainders = remainders;
    const StageProgram program = lower(small_plan(shardwise_engine(), layout, 1, 4)).stages[0];
    return optimizer_bytes(program, MoveKind::optimizer);
  };
  EXPECT_NEAR(bytes(true) / bytes(false), 28.0 / 30, 1e-9);
}

// Gradient and moments, and bf16 weights read and written: no other weights.
TEST(Optimizer, MovesSixBytesAnElementLessWhereBf16WeightsAreTheMainOnes) {
  Layout layout;
  layout.dp_shard = 2;
  layout.zero_stage = 1;
  Plan plan = small_plan(shardwise_engine(), layout, 1, 4);
  const double copied = optimizer_bytes(lower(plan).stages[0], MoveKind::optimizer);
  plan.job.main_dtype = DType::bf16;
  const double alone = optimizer_bytes(lower(plan).stages[0], MoveKind::optimizer);
  EXPECT_NEAR(alone / copied, 24.0 / 30, 1e-9);
}

// Megatron squares what it updates: all of it in one pass of the optimizer's.
TEST(Optimizer, SquaresWhatItUpdatesUnderOtherEngines) {
  Layout layout;
  layout.dp_shard = 2;
  const StageProgram program = lower(small_plan(megatron_ddp(), layout, 1, 4)).stages[0];
  EXPECT_EQ(optimizer_bytes(program, MoveKind::gradient_norm), 0);
}

}  // namespace
}  // namespace shardwise::test
