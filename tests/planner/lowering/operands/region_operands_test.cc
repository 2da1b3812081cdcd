// What the regions of a pass read and write, and the collectives between them.
#include <gtest/gtest.h>

#include "planner/lowering/lower_regions.h"
#include "tests/planner/lowering/run_programs.h"

namespace shardwise::test {
namespace {

Plan shared_plan(int zero_stage, std::int32_t dp_shard, Recompute recompute) {
  Layout layout;
  layout.tp = 2;
  layout.dp_shard = dp_shard;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.recompute = recompute;
  Plan plan = small_plan(*find_engine("shardwise"), layout, 2, 2);
  plan.job.loss = LossKernel::chunked;
  plan.job.loss_chunk_rows = 512;
  return plan;
}

/// Rooms that name a tensor for every collective.
std::vector<LayerRoom> rooms_of(const Plan& plan) {
  const std::int64_t stream = plan.job.sequence_length * plan.model.hidden_size;
  const MetTensor in_stream = {OperandPart::stream, plan.job.precision, 0, stream, 0};
  const MetTensor in_saved = {OperandPart::saved, DType::fp32, 16, 32, 0};
  const MetTensor in_space = {OperandPart::layer_workspace, DType::fp32, 0, 32, 0};
  const MetTensor rows = {OperandPart::layer_workspace, DType::fp32, 0, 32, 16};
  std::vector<LayerRoom> rooms = made_up_rooms(plan);
  for (std::size_t k = 0; k < rooms.size(); ++k) {
    const LayerRole role = plan.model.kinds[k].role;
    const bool again = plan.layout.recompute == Recompute::full;
    if (role == LayerRole::embedding) rooms[k].met_forward = {in_stream};
    if (role == LayerRole::head) rooms[k].met_backward = {rows, rows, in_saved};
    if (role != LayerRole::block) continue;
    rooms[k].met_forward = {in_stream, in_stream};
    if (again) rooms[k].met_recompute = {in_space};
    rooms[k].met_backward = {again ? in_space : in_saved, again ? in_space : in_saved};
  }
  return rooms;
}

StepProgram program_of(const Plan& plan, int tp_rank, std::int32_t stage = 0) {
  DataParallelPlace place = place_of(plan.layout, 0);
  place.tp_ranks = 2;
  place.tp_rank = tp_rank;
  return lower_to_run(plan, StepKind::steady, place, rooms_of(plan), true, stage);
}

TEST(RegionOperands, AreSound) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const std::int32_t dp_shard : {1, 2}) {
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        const Plan plan = shared_plan(zero_stage, dp_shard, recompute);
        for (const int rank : {0, 1}) EXPECT_EQ(problems_of(program_of(plan, rank)), "");
      }
    }
  }
}

TEST(RegionOperands, NameTheTensorOfACollective) {
  const Plan plan = shared_plan(0, 1, Recompute::none);
  StageProgram stage = program_of(plan, 0).stages.front();
  EXPECT_EQ(operands_of(stage, "fwd.layer1.mb0.1"),
            "accumulate stream [0, 524288) bf16 of working\n");
  EXPECT_EQ(operands_of(stage, "bwd.layer1.mb0.3"),
            "accumulate saved [16, 48) fp32 of activations\n");
  EXPECT_EQ(operands_of(stage, "bwd.layer3.mb0.1"),
            "accumulate layer_workspace [0, 32) fp32 of logits_and_loss, by 16\n");
}

/// The same plan, whose ranks have pieces of the stream. Rooms that name both of each collective.
Plan spread_plan(Recompute recompute, std::int32_t pp = 1) {
  Plan plan = shared_plan(0, 1, recompute);
  plan.layout.sequence_parallel = true;
  plan.layout.pp = pp;
  return plan;
}

StepProgram spread_program(const Plan& plan, std::int32_t stage = 0) {
  const std::int64_t piece = plan.job.sequence_length * plan.model.hidden_size / 2;
  const std::int64_t bytes = 2 * piece * bytes_of(plan.job.precision);
  const auto between = [&](const MetPiece& own, bool apart = false) {
    return MetTensor{
        OperandPart::layer_workspace, plan.job.precision, 0, 2 * piece, piece, apart, own};
  };
  const MetTensor rows = {OperandPart::layer_workspace, DType::fp32, 0, 32, 16};
  const bool again = plan.layout.recompute == Recompute::full;
  std::vector<LayerRoom> rooms = made_up_rooms(plan);
  for (std::size_t k = 0; k < rooms.size(); ++k) {
    LayerRoom& room = rooms[k];
    room.saved = room.forward_workspace = room.backward_workspace = 2 * bytes;
    const MetPiece normed = {again ? OperandPart::layer_workspace : OperandPart::saved, piece};
    switch (plan.model.kinds[k].role) {
      case LayerRole::embedding:
        room.met_forward = room.met_backward = {between({})};
        break;
      case LayerRole::head:
        room.met_backward = {between({OperandPart::saved}), rows, rows,
                             between({OperandPart::saved})};
        break;
      default: {
        room.gathered = bytes;
        const MetPiece made = {OperandPart::layer_workspace, 3 * piece};
        const MetTensor sum = between({OperandPart::stream, 0, true});
        room.met_forward = {between(made), sum, between(made), sum};
        const MetPiece kept = again ? MetPiece{OperandPart::layer_workspace, 0} : normed;
        const MetTensor gradient = between(kept, true);
        if (again) room.met_recompute = {gradient, between({kept.part, 0, true}, true), gradient};
        const MetTensor stream = between({}, true);
        room.met_backward = {stream, gradient, gradient, stream, gradient, gradient};
      }
    }
  }
  DataParallelPlace place = place_of(plan.layout, 0);
  place.tp_ranks = 2;
  return lower_to_run(plan, StepKind::steady, place, rooms, true, stage);
}

TEST(SequenceRegionOperands, AreSound) {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    EXPECT_EQ(problems_of(spread_program(spread_plan(recompute))), "");
    const Plan plan = spread_plan(recompute, 2);
    StepProgram program = spread_program(plan, 0);
    program.stages.push_back(spread_program(plan, 1).stages.front());
    EXPECT_EQ(problems_of(program), "");
  }
}

// A gather reads a piece and writes the whole; a reduce-scatter joins the stream's piece, or takes
// the place of a norm's.
TEST(SequenceRegionOperands, NameWholeAndPiece) {
  StageProgram stage = spread_program(spread_plan(Recompute::none)).stages.front();
  EXPECT_EQ(operands_of(stage, "fwd.layer1.mb0.3"),
            "input layer_workspace [0, 524288) bf16 of working, by 262144\n"
            "accumulate stream [0, 262144) bf16 of working\n");
  EXPECT_EQ(operands_of(stage, "bwd.layer1.mb0.3"),
            "output layer_workspace [0, 524288) bf16 of working, by 262144\n"
            "input saved [262144, 524288) bf16 of activations\n");
  EXPECT_EQ(operands_of(stage, "bwd.layer1.mb0.5"),
            "input layer_workspace [0, 524288) bf16 of working, by 262144\n"
            "output saved [262144, 524288) bf16 of activations\n");
}

// What a stage sends on is summed by the collective that ends its pass.
TEST(RegionOperands, LeaveTheStreamInTheMessageOfAStage) {
  for (const int zero_stage : {0, 3}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Plan plan = shared_plan(zero_stage, 2, recompute);
      plan.layout.pp = 2;
      StepProgram program = program_of(plan, 1, 0);
      program.stages.push_back(program_of(plan, 1, 1).stages.front());
      EXPECT_EQ(problems_of(program), "");
      for (const StageProgram& stage : program.stages) {
        int sent = 0;
        const ProgramOp* last = nullptr;  // of the forward pass
        for (const ProgramOp& each : stage.operations) {
          if (each.role == OpRole::forward) last = &each;
          if (each.role != OpRole::send_forward) continue;
          ++sent;
          EXPECT_TRUE(is_between_regions(stage, *last));
          EXPECT_EQ(stage.operands_of(*last).back().buffer, stage.operands_of(each).front().buffer);
        }
        EXPECT_EQ(sent, stage.stage == 0 ? 2 : 0);
      }
    }
  }
}

// What all ranks of tensor parallelism have whole is in the norm of the first alone.
TEST(RegionOperands, CountEveryElementOfTheNormOnce) {
  for (const int zero_stage : {0, 3}) {
    const Plan plan = shared_plan(zero_stage, 1, Recompute::none);
    std::int64_t counted = 0;
    for (const int rank : {0, 1}) {
      StageProgram stage = program_of(plan, rank).stages.front();
      for (const Operand& each : stage.operands_of(find(stage, "gradient_norm"))) {
        if (each.part == OperandPart::gradients) counted += each.count;
      }
    }
    std::int64_t all = 0;
    for (const int kind : plan.model.layers) {
      for (const ParameterSpec& each :
           plan.model.kinds[static_cast<std::size_t>(kind)].parameters) {
        all += each.elements();
      }
    }
    EXPECT_EQ(counted, all);
  }
}

}  // namespace
}  // namespace shardwise::test
