// Programs of one stage of a pipeline: where messages lie, and whose a table is that two stages
// have.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planner/lowering/operands/lower_to_run.h"
#include "planner/spec/plan/names.h"
#include "tests/planner/lowering/run_programs.h"

namespace shardwise::test {
namespace {

constexpr std::int64_t kHidden = 8;
constexpr std::int64_t kTokens = 16;
constexpr std::int64_t kVocabulary = 64;

/// Four blocks on the laptop, over two ranks of data parallelism.
Plan staged_plan(std::int32_t pp, PipelineSchedule schedule, int zero_stage, bool tied = false) {
  Layout layout;
  layout.pp = pp;
  layout.schedule = schedule;
  layout.dp_shard = 2;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  Plan plan = small_plan(*find_engine("shardwise"), layout, 4);
  plan.model = llama(4, kHidden, 48, 2, 1, kVocabulary);
  plan.model.tie_word_embeddings = tied;
  for (LayerSpec& kind : plan.model.kinds) {
    if (tied && kind.role == LayerRole::head) kind.parameters.pop_back();
  }
  plan.cluster = *with_gpus(*find_cluster("laptop"), layout.world());
  plan.job.sequence_length = kTokens;
  plan.job.precision = DType::fp32;
  EXPECT_TRUE(check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).empty());
  return plan;
}

/// The program of a stage, which is sound: else this aborts.
StageProgram sound_stage(const Plan& plan, std::int32_t stage, StepKind step = StepKind::steady,
                         int rank = 0) {
  DataParallelPlace place;
  place.shard_ranks = plan.layout.dp_shard;
  place.shard_rank = rank;
  place.stage_ranks = plan.layout.dp();
  place.stage_rank = rank;
  StageProgram program =
      lower_to_run(plan, step, place, made_up_rooms(plan), true, stage).stages.front();
  require_sound(program);
  return program;
}

TEST(PipelineOperands, AreSoundForEveryStageScheduleAndWayOfSharding) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::looped_bfs}) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      for (const std::int32_t pp : {2, 4}) {
        const Plan plan = staged_plan(pp, schedule, zero_stage);
        for (std::int32_t stage = 0; stage < pp; ++stage) {
          SCOPED_TRACE(
              fmt::format("{} ZeRO-{}, {} of {}", name_of(schedule), zero_stage, stage, pp));
          sound_stage(plan, stage, StepKind::first);
          const StageProgram program = sound_stage(plan, stage);
          EXPECT_EQ(program.stage, stage);
          for (const ProgramOp& op : program.operations) {
            if (op.message < 0) continue;
            const auto operands = program.operands_of(op);
            ASSERT_EQ(operands.size(), 1U) << name_of(program, op);
            EXPECT_EQ(operands[0].count, kTokens * kHidden);
            const bool sends = op.stream == Stream::send;
            EXPECT_EQ(operands[0].access, sends ? Access::input : Access::output);
          }
        }
      }
    }
  }
}

TEST(PipelineOperands, BeginAPassWithTheMessageAndEndItWithTheNext) {
  const Plan plan = staged_plan(4, PipelineSchedule::one_f_one_b, 0);
  StageProgram inner = sound_stage(plan, 1);
  for (const char* const pass : {"fwd.layer2.mb1", "bwd.layer2.mb1"}) {
    std::string streams;
    std::vector<std::uint32_t> buffers;
    for (const Operand& operand : inner.operands_of(find(inner, pass))) {
      if (operand.part != OperandPart::stream) continue;
      streams += fmt::format("{} ", name_of(operand.access));
      buffers.push_back(operand.buffer);
    }
    EXPECT_EQ(streams, "input output output ") << pass;
    std::ranges::sort(buffers);
    EXPECT_EQ(std::ranges::adjacent_find(buffers), buffers.end()) << pass;
  }
  StageProgram first = sound_stage(plan, 0);
  EXPECT_EQ(operand_of(first, "fwd.layer0.mb1", OperandPart::stream, Access::output).count,
            kTokens * kHidden);
}

// Its gradients are summed over both stages, and the first one stands for them in the norm.
TEST(PipelineOperands, HaveATableOfTwoStagesOnBothAndCountItOnce) {
  const Plan plan = staged_plan(2, PipelineSchedule::one_f_one_b, 0, true);
  const LoweringContext context = lowering_context(plan, Granularity::layer, false);
  std::int64_t counted = 0;
  std::int64_t kept = 0;
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    const StateUnits units = state_units(context, stage);
    const UnitTensor& table = units.tensor(units.table());
    EXPECT_EQ(table.name, "model.embed_tokens.weight");
    EXPECT_EQ(table.copy, stage == 1);
    EXPECT_EQ(table.elements, kVocabulary * kHidden);
    kept += units.elements();
    StageProgram program = sound_stage(plan, stage);
    const auto sum = std::ranges::find_if(
        program.operations, [](const ProgramOp& op) { return op.role == OpRole::finalize; });
    ASSERT_NE(sum, program.operations.end());
    ASSERT_EQ(program.operands_of(*sum).size(), 1U);
    EXPECT_EQ(program.operands_of(*sum)[0].count, table.elements);
    EXPECT_EQ(program.operands_of(*sum)[0].first, table.begin);
    for (const int rank : {0, 1}) {
      StageProgram own = sound_stage(plan, stage, StepKind::steady, rank);
      for (const Operand& operand : own.operands_of(find(own, "gradient_norm"))) {
        if (operand.part == OperandPart::gradients) counted += operand.count;
      }
    }
  }
  EXPECT_EQ(kept, plan.model.parameter_count() + kVocabulary * kHidden);
  EXPECT_EQ(counted, plan.model.parameter_count());
}

}  // namespace
}  // namespace shardwise::test
