#include "planner/lowering/checks/check_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Our executor's ZeRO-3 step, whose units take turns with two buffers.
StepProgram sound_step() {
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 3;
  return lower(small_plan(shardwise_engine(), layout, 2));
}

ProgramOp& find(StageProgram& stage, const std::string& name) {
  for (ProgramOp& op : stage.operations) {
    if (name_of(stage, op) == name) return op;
  }
  ADD_FAILURE() << name;
  return stage.operations.front();
}

TEST(CheckProgram, FindsNothingInWhatIsLowered) { EXPECT_EQ(problems_of(sound_step()), ""); }

// The gather into a buffer must wait for the layer that used it: without, real memory is torn.
TEST(CheckProgram, FindsABufferThatIsFilledWhileALayerUsesIt) {
  StepProgram program = sound_step();
  StageProgram& stage = program.stages[0];
  ProgramOp& gather = find(stage, "gather.layer5.mb0");
  gather.waits.end = gather.waits.begin;
  EXPECT_THAT(problems_of(program), HasSubstr("gather.layer5.mb0 touches buffer"));
  EXPECT_THAT(problems_of(program), HasSubstr("which fwd.layer3.mb0 may touch at the same time"));
}

TEST(CheckProgram, FindsAReductionThatDoesNotWaitForItsGradients) {
  StepProgram program = sound_step();
  StageProgram& stage = program.stages[0];
  ProgramOp& reduce = find(stage, "reduce.layer4.mb1");
  reduce.waits.end = reduce.waits.begin;
  EXPECT_THAT(problems_of(program), HasSubstr("which bwd.layer4.mb1 may touch at the same time"));
}

// In the order of issue all is well; but the stream that frees does not wait for the one that uses.
TEST(CheckProgram, FindsABufferThatIsFreedWhileItMayBeUsed) {
  StageProgram stage;
  OpCost cost;
  cost.host_bytes = 1;
  stage.costs.push_back(cost);
  ProgramBuffer buffer;
  buffer.bytes = 1;
  stage.buffers.push_back(buffer);
  stage.indices = {0};
  const auto add = [&](Stream stream) -> ProgramOp& {
    ProgramOp op;
    op.stream = stream;
    op.layer = static_cast<std::int32_t>(stage.operations.size());
    stage.operations.push_back(op);
    return stage.operations.back();
  };
  add(Stream::compute).allocates = {0, 1};
  ProgramOp& user = add(Stream::all_gather);
  user.waits = {0, 1};  // the first operation: index 0 names it and the buffer
  user.uses = {0, 1};
  add(Stream::compute).frees = {0, 1};
  StepProgram program;
  program.stages.push_back(stage);
  EXPECT_THAT(problems_of(program), HasSubstr("fwd.layer2 touches buffer 0"));
  program.stages[0].indices.push_back(1);
  program.stages[0].operations[2].waits = {1, 2};
  EXPECT_EQ(problems_of(program), "");
}

/// A layer's first buffer of a category in one micro-batch.
std::uint32_t buffer_of(const StageProgram& stage, MemoryCategory category, std::int32_t layer,
                        std::int32_t microbatch) {
  for (std::uint32_t b = 0; b < stage.buffers.size(); ++b) {
    const ProgramBuffer& each = stage.buffers[b];
    if (each.category == category && each.layer == layer && each.microbatch == microbatch) return b;
  }
  ADD_FAILURE() << "layer " << layer << " has none for micro-batch " << microbatch;
  return 0;
}

// Both exist, and one stream orders all that touch them: only the micro-batch tells.
TEST(CheckProgram, FindsActivationsOfAnotherMicrobatchWhereSchedulesInterleave) {
  Layout layout;
  layout.pp = 2;
  layout.vpp = 2;
  layout.dp_shard = 4;
  const StepProgram sound_step = lower(small_plan(*find_engine("megatron_ddp"), layout, 4));
  ASSERT_EQ(problems_of(sound_step), "");
  for (const char* reader : {"fwd.layer1.mb1", "bwd.layer1.mb1"}) {
    StepProgram program = sound_step;
    StageProgram& stage = program.stages[0];
    const std::uint32_t other = buffer_of(stage, MemoryCategory::activations, 1, 2);
    ProgramOp& op = find(stage, reader);
    const auto at = static_cast<std::uint32_t>(stage.indices.size());
    stage.indices.push_back(other);
    op.uses = {at, at + 1};
    EXPECT_THAT(problems_of(program),
                AllOf(HasSubstr(std::string(reader) + " touches buffer"),
                      HasSubstr("(activations, "), HasSubstr("bytes) of micro-batch 2")))
        << reader;
  }
}

TEST(CheckProgram, FindsABufferThatIsUsedBeforeItIsThere) {
  StepProgram program = sound_step();
  StageProgram& stage = program.stages[0];
  ProgramOp& first = stage.operations.front();
  ProgramOp& last = stage.operations.back();
  std::swap(first.allocates, last.allocates);
  EXPECT_NE(problems_of(program), "");
}

}  // namespace
}  // namespace shardwise::test
