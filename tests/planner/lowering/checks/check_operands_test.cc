// A planted defect of each kind is named, with the operation and the operand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/planner/lowering/run_programs.h"

namespace shardwise::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Our executor's ZeRO-3 step, whose units take turns with two buffers, in fp32.
StepProgram sound_run() {
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 3;
  Plan plan = small_plan(shardwise_engine(), layout, 2);
  plan.job.precision = DType::fp32;
  return run_program(plan);
}

enum class List { allocates, frees };

/// Lets another operation allocate or free a buffer.
void move_to(StageProgram& stage, List which, std::uint32_t buffer, const std::string& name) {
  const auto list_of = [&](ProgramOp& op) -> IndexRange& {
    return which == List::allocates ? op.allocates : op.frees;
  };
  const auto write = [&](ProgramOp& op, const std::vector<std::uint32_t>& all) {
    const auto begin = static_cast<std::uint32_t>(stage.indices.size());
    stage.indices.insert(stage.indices.end(), all.begin(), all.end());
    list_of(op) = {begin, static_cast<std::uint32_t>(stage.indices.size())};
  };
  for (ProgramOp& op : stage.operations) {
    const auto old = stage.of(list_of(op));
    std::vector<std::uint32_t> all(old.begin(), old.end());
    if (std::erase(all, buffer) > 0) write(op, all);
  }
  ProgramOp& op = find(stage, name);
  const auto old = stage.of(list_of(op));
  std::vector<std::uint32_t> all(old.begin(), old.end());
  all.push_back(buffer);
  write(op, all);
}

TEST(CheckOperands, FindsNothingInWhatIsLowered) { EXPECT_EQ(problems_of(sound_run()), ""); }

TEST(CheckOperands, FindsWeightsThatNobodyGathered) {
  StepProgram program = sound_run();
  operand_of(program.stages[0], "gather.layer4.mb0", OperandPart::gathered_weights, Access::output)
      .count -= 1;
  EXPECT_THAT(problems_of(program), HasSubstr("fwd.layer4.mb0 has parameter as input in buffer"));
  EXPECT_THAT(problems_of(program), HasSubstr("which nobody wrote"));
}

// Gradients of the step before are not those of this one, though they lie in the same place.
TEST(CheckOperands, FindsGradientsThatAreAddedToBeforeTheyAreWritten) {
  StepProgram program = sound_run();
  operand_of(program.stages[0], "reduce.layer4.mb0", OperandPart::gradients, Access::output)
      .access = Access::accumulate;
  EXPECT_THAT(problems_of(program), HasSubstr("reduce.layer4.mb0 has gradients as accumulate"));
  EXPECT_THAT(problems_of(program), HasSubstr("which nobody wrote"));
}

/// FSDP2's ZeRO-3 step of three micro-batches, whose buffers are each of one of them.
StepProgram three_microbatches(bool reduces_each) {
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 3;
  layout.reduce_every_microbatch = reduces_each;
  layout.recompute = Recompute::full;
  const Plan plan = small_plan(*find_engine("fsdp2"), layout, 3);
  StepProgram program = run_program(plan);
  EXPECT_EQ(problems_of(program), "");
  return program;
}

/// Has an operand lie where another operation's does, in a buffer that then stays to the end, so
/// that it is there and nobody else writes it.
void read_instead(StageProgram& stage, const std::string& op, const std::string& other,
                  OperandPart part) {
  const Operand& from = operand_of(stage, other, part, Access::output);
  move_to(stage, List::frees, from.buffer, "optimizer");
  const ProgramOp& each = find(stage, op);
  for (std::uint32_t i = each.operands.begin; i < each.operands.end; ++i) {
    if (stage.operands[i].part == part) stage.operands[i].buffer = from.buffer;
  }
}

TEST(CheckOperands, FindsWhatALayerKeptOfAnotherMicrobatch) {
  for (const OperandPart part : {OperandPart::saved, OperandPart::layer_workspace}) {
    StepProgram program = three_microbatches(true);
    const bool again = part == OperandPart::layer_workspace;
    read_instead(program.stages[0], "bwd.layer4.mb1",
                 again ? "recompute.layer4.mb0" : "fwd.layer4.mb0", part);
    EXPECT_THAT(
        problems_of(program),
        HasSubstr(fmt::format("bwd.layer4.mb1 has {} as accumulate in buffer", name_of(part))));
    EXPECT_THAT(problems_of(program), HasSubstr("which holds micro-batch 0, not micro-batch 1"));
  }
}

TEST(CheckOperands, FindsAStreamOfAnotherMicrobatch) {
  StepProgram program = three_microbatches(true);
  read_instead(program.stages[0], "fwd.layer4.mb1", "fwd.layer0.mb0", OperandPart::stream);
  EXPECT_THAT(problems_of(program), HasSubstr("fwd.layer4.mb1 has stream as accumulate in buffer"));
  EXPECT_THAT(problems_of(program), HasSubstr("which holds micro-batch 0, not micro-batch 1"));
}

TEST(CheckOperands, FindsTokensOfAnotherMicrobatch) {
  StepProgram program = three_microbatches(true);
  StageProgram& stage = program.stages[0];
  operand_of(stage, "fwd.layer0.mb1", OperandPart::inputs, Access::input) =
      operand_of(stage, "fwd.layer0.mb0", OperandPart::inputs, Access::input);
  EXPECT_THAT(problems_of(program), HasSubstr("fwd.layer0.mb1 has inputs as input in buffer"));
  EXPECT_THAT(problems_of(program), HasSubstr("which holds micro-batch 0, not micro-batch 1"));
}

TEST(CheckOperands, FindsAReductionOfAnotherMicrobatchsGradients) {
  StepProgram program = three_microbatches(true);
  read_instead(program.stages[0], "reduce.layer4.mb1", "copy_in.layer4.mb0",
               OperandPart::sent_gradients);
  EXPECT_THAT(problems_of(program),
              HasSubstr("reduce.layer4.mb1 has sent_gradients as input in buffer"));
  EXPECT_THAT(problems_of(program), HasSubstr("which holds micro-batch 0, not those up to 1"));
}

// The sum begins anew, so the optimizer's gradients lack a micro-batch.
TEST(CheckOperands, FindsAMicrobatchThatGradientsLack) {
  for (const auto& [each, op, part] :
       {std::tuple{true, "reduce.layer4.mb1", OperandPart::gradients},
        std::tuple{false, "bwd.layer4.mb1", OperandPart::gradient_sum}}) {
    StepProgram program = three_microbatches(each);
    operand_of(program.stages[0], op, part, Access::accumulate).access = Access::output;
    EXPECT_THAT(problems_of(program),
                AllOf(HasSubstr("gradient_norm has gradients as input in buffer"),
                      HasSubstr("which holds micro-batches 1 to 2, not micro-batches 0 to 2")))
        << op;
  }
}

// Kernels of GPUs add to what earlier micro-batches left.
TEST(CheckOperands, FindsASumThatAMicrobatchDoesNotJoin) {
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 1;
  StepProgram program = run_program(small_plan(shardwise_engine(), layout, 3));
  ASSERT_EQ(problems_of(program), "");
  StageProgram& stage = program.stages[0];
  operand_of(stage, "bwd.layer4.mb1", OperandPart::joined_gradients, Access::accumulate).access =
      Access::input;
  EXPECT_THAT(problems_of(program),
              AllOf(HasSubstr("bwd.layer4.mb1 has parameter_gradient as accumulate in buffer"),
                    HasSubstr("which holds micro-batch 0, not those up to 1")));
}

TEST(CheckOperands, FindsAnOperandThatIsReadAfterItsBufferIsFreed) {
  StepProgram program = sound_run();
  StageProgram& stage = program.stages[0];
  const std::uint32_t saved =
      operand_of(stage, "bwd.layer4.mb0", OperandPart::saved, Access::accumulate).buffer;
  move_to(stage, List::frees, saved, "fwd.layer4.mb0");
  EXPECT_THAT(problems_of(program), HasSubstr("bwd.layer4.mb0 has saved as accumulate"));
  EXPECT_THAT(problems_of(program), HasSubstr("which fwd.layer4.mb0 may have freed"));
}

TEST(CheckOperands, FindsAnOperandInABufferThatIsNotThereYet) {
  StepProgram program = sound_run();
  StageProgram& stage = program.stages[0];
  const std::uint32_t saved =
      operand_of(stage, "fwd.layer4.mb0", OperandPart::saved, Access::output).buffer;
  move_to(stage, List::allocates, saved, "fwd.layer5.mb0");
  EXPECT_THAT(problems_of(program), HasSubstr("fwd.layer4.mb0 has saved as output"));
  EXPECT_THAT(problems_of(program), HasSubstr("which may not be allocated yet"));
}

TEST(CheckOperands, FindsAnOperandBeyondItsBuffer) {
  StepProgram program = sound_run();
  Operand& shard =
      operand_of(program.stages[0], "reduce.layer4.mb0", OperandPart::gradients, Access::output);
  shard.count += 1;
  const std::int64_t bytes = program.stages[0].buffers[shard.buffer].bytes;
  EXPECT_THAT(problems_of(program),
              HasSubstr(fmt::format("bytes 0 to {} of {}", bytes + 4, bytes)));
}

// In the order of issue all is well; but nothing orders the streams.
TEST(CheckOperands, FindsAGatherThatOverwritesWhatALayerReads) {
  StepProgram program = sound_run();
  ProgramOp& gather = find(program.stages[0], "gather.layer5.mb0");
  gather.waits.end = gather.waits.begin;
  EXPECT_THAT(problems_of(program), HasSubstr("gather.layer5.mb0 has gathered_weights as output"));
  EXPECT_THAT(problems_of(program), HasSubstr("which fwd.layer3.mb0 may read at the same time"));
}

TEST(CheckOperands, FindsALayerThatDoesNotWaitForItsWeights) {
  StepProgram program = sound_run();
  ProgramOp& forward = find(program.stages[0], "fwd.layer4.mb0");
  forward.waits.end = forward.waits.begin;
  EXPECT_THAT(problems_of(program), HasSubstr("fwd.layer4.mb0 has parameter as input"));
  EXPECT_THAT(problems_of(program), HasSubstr("which gather.layer4.mb0 may write"));
}

TEST(CheckOperands, FindsAReductionThatDoesNotWaitForItsGradients) {
  StepProgram program = sound_run();
  ProgramOp& reduce = find(program.stages[0], "reduce.layer4.mb1");
  reduce.waits.end = reduce.waits.begin;
  EXPECT_THAT(problems_of(program), HasSubstr("reduce.layer4.mb1 has sent_gradients as input"));
  EXPECT_THAT(problems_of(program), HasSubstr("which bwd.layer4.mb1 may write at the same time"));
}

TEST(CheckOperands, FindsAnOptimizerThatDoesNotWaitForTheLastReduction) {
  StepProgram program = sound_run();
  for (const char* name : {"gradient_norm", "optimizer"}) {
    ProgramOp& op = find(program.stages[0], name);
    op.waits.end = op.waits.begin;
  }
  EXPECT_THAT(problems_of(program), HasSubstr("optimizer has gradients as input"));
}

TEST(CheckOperands, FindsABufferThatThereIsNot) {
  StepProgram program = sound_run();
  operand_of(program.stages[0], "optimizer", OperandPart::gradients, Access::input).buffer = 100000;
  EXPECT_THAT(problems_of(program), HasSubstr("in buffer 100000, which there is not"));
}

}  // namespace
}  // namespace shardwise::test
