// What operations read and write, and that every data-parallel program says so soundly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <tuple>

#include "planner/lowering/operands/state_units.h"
#include "tests/planner/lowering/run_programs.h"

namespace shardwise::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A Llama whose units have 512 (embedding), 1360 (block) and 520 elements (head), the head first.
Plan tiny(const char* engine, int zero_stage, std::int64_t num_microbatches) {
  Layout layout;
  layout.dp_shard = 2;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  Plan plan = small_plan(*find_engine(engine), layout, num_microbatches);
  plan.model = llama(1, 8, 48, 2, 1, 64);
  plan.cluster = *with_gpus(*find_cluster("laptop"), 2);
  plan.job.sequence_length = 16;
  plan.job.precision = DType::bf16;
  plan.layout.fp32_gradients = false;
  return plan;
}

/// The collectives that move anything but equal pieces, a line an operand.
std::string ragged_pieces(StageProgram& stage, const Layout& layout) {
  std::string text;
  for (const ProgramOp& op : stage.operations) {
    const CollectiveWork* work = stage.communication(op);
    if (work == nullptr || work->kind == CollectiveKind::all_reduce) continue;
    const std::int64_t ranks = std::ssize(group_ranks(layout, work->group, 0));
    std::int64_t piece = 0;
    for (const Operand& each : stage.operands_of(op)) piece = std::max(piece, each.piece);
    for (const Operand& each : stage.operands_of(op)) {
      if (each.buffer == stage.step_block) continue;
      if (each.count == (each.piece > 0 ? piece * ranks : piece)) continue;
      text += name_of(stage, op) + ": " + operands_of(stage, name_of(stage, op));
    }
  }
  return text;
}

/// \returns programs of both steps, of the last rank, whose pieces are the shortest; and of one
/// whose communicators do not add into shards
int check_programs(const Plan& plan) {
  const int last = static_cast<int>(plan.layout.world()) - 1;
  for (const auto& [step, adds] :
       {std::pair{StepKind::first, true}, {StepKind::steady, true}, {StepKind::steady, false}}) {
    StepProgram program = run_program(plan, step, last, adds);
    const Layout& layout = plan.layout;
    const std::string text =
        fmt::format("{} ZeRO-{}, {} x {} on {}", plan.engine.name, int{layout.zero_stage},
                    layout.dp_shard, layout.dp_replicate, plan.cluster.name);
    EXPECT_EQ(problems_of(program), "") << text;
    if (plan.cluster.gpu.vendor == "cpu") continue;
    EXPECT_EQ(ragged_pieces(program.stages.front(), plan.layout), "") << text;
  }
  return 3;
}

TEST(LowerToRun, ListsSoundOperandsForEveryEngineThatRuns) {
  int programs = 0;
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const int zero_stage : find_engine(name)->zero_stages) {
      for (const auto& [shard, replicate, outer] :
           {std::tuple{1, 1, false}, {3, 1, false}, {2, 2, false}, {2, 2, true}}) {
        for (const auto& [precision, wide] :
             {std::pair{DType::fp32, true}, {DType::bf16, true}, {DType::bf16, false}}) {
          for (const bool each : {true, false}) {
            for (const std::int32_t reshard : {1, 0}) {
              for (const bool twice : {false, true}) {
                Plan plan = tiny(name, zero_stage, 3);
                Layout& layout = plan.layout;
                layout.dp_shard = shard;
                layout.dp_replicate = replicate;
                layout.outer_shards_optimizer = outer;
                layout.reduce_every_microbatch = each;
                layout.reshard_after_forward = reshard;
                layout.double_buffer = twice;
                layout.store_param_remainders =
                    std::string_view(name) == "shardwise" && precision == DType::bf16 && twice;
                layout.fp32_gradients = wide;
                layout.recompute = each ? Recompute::full : Recompute::none;
                plan.job.precision = precision;
                plan.model.tie_word_embeddings = wide;
                for (LayerSpec& kind : plan.model.kinds) {
                  if (wide && kind.role == LayerRole::head) kind.parameters.pop_back();
                }
                plan.job.global_batch_size = layout.dp() * 3;
                for (const char* cluster : {"laptop", "dgx-h100"}) {
                  plan.cluster = *with_gpus(*find_cluster(cluster), layout.world());
                  if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) continue;
                  programs += check_programs(plan);
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(programs, 2400);
}

TEST(LowerToRun, PutsStatesIntoTheSameBuffersInBothSteps) {
  for (const char* name : {"shardwise", "megatron_ddp", "fsdp2"}) {
    const Plan plan = tiny(name, find_engine(name)->zero_stages.back(), 2);
    const StepProgram first = run_program(plan, StepKind::first);
    EXPECT_EQ(first.stages[0].units, run_program(plan).stages[0].units) << name;
  }
}

TEST(LowerToRun, GathersAUnitFromItsShards) {
  StageProgram stage = run_program(tiny("shardwise", 3, 2)).stages[0];
  EXPECT_EQ(operands_of(stage, "gather.layer1.mb0"),
            "input weights 1 [0, 680) bf16 of weights\n"
            "output gathered_weights 1 [0, 1360) bf16 of gathered_weights, by 680\n");
}

// Pieces of 128 B of bf16 weights are 64 elements: two ranks' end at multiples of 128, 1408.
TEST(LowerToRun, GathersEqualPiecesOf128BytesOnGpus) {
  Plan plan = tiny("shardwise", 3, 2);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 2);
  StageProgram stage = run_program(plan).stages[0];
  EXPECT_EQ(operands_of(stage, "gather.layer1.mb0"),
            "input weights 1 [0, 704) bf16 of weights\n"
            "output gathered_weights 1 [0, 1408) bf16 of gathered_weights, by 704\n");
}

// FSDP2 pads the rows of each tensor to the ranks, so that its collectives have equal pieces.
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
// padded_sharded_param_size.
TEST(LowerToRun, EndsAUnitWithTheLastPieceOfItsEngineOnGpus) {
  Plan plan = tiny("fsdp2", 3, 1);
  plan.layout.dp_shard = 3;
  plan.job.global_batch_size = 3;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 3);
  const StateUnits units = state_units(lowering_context(plan, Granularity::layer, false), 0);
  // Thirds of the rows, rounded up: two norms of 8, queries and output 8 x 8, keys and values 4 x
  // 8, gate and up 48 x 8, down 8 x 48.
  const std::int64_t piece = 2 * 3 + 2 * (3 * 8) + 2 * (2 * 8) + 2 * (16 * 8) + 3 * 48;
  EXPECT_EQ(units.units[1].shard, piece);
  EXPECT_EQ(units.units[1].elements, 3 * piece);
  EXPECT_EQ(units.units[1].tensors.back().begin + units.units[1].tensors.back().elements, 1360);
}

TEST(LowerToRun, CastsAShardBeforeItIsGatheredAndCopiesItOut) {
  StageProgram stage = run_program(tiny("fsdp2", 3, 1)).stages[0];
  EXPECT_EQ(operands_of(stage, "cast.layer1.mb0"),
            "input weights 1 [0, 680) fp32 of main_weights\n"
            "output cast_weights 1 [0, 680) bf16 of gathered_weights\n");
  EXPECT_EQ(operands_of(stage, "gather.layer1.mb0"),
            "input cast_weights 1 [0, 680) bf16 of gathered_weights\n"
            "output gathered_weights 1 [0, 1360) bf16 of gathered_weights, by 680\n");
  EXPECT_EQ(operands_of(stage, "copy_out.layer1.mb0"),
            "input gathered_weights 1 [0, 1360) bf16 of gathered_weights\n"
            "output gathered_weights 1 [0, 1360) bf16 of gathered_weights\n");
}

// Kernels of GPUs add to the sum of earlier micro-batches: nothing is cleared or made beside it.
TEST(LowerToRun, AddsALaterMicrobatchsGradientsToTheSumOnGpus) {
  Plan plan = tiny("shardwise", 1, 2);
  // What is listed first of the gradients.
  const auto made_of = [&](const std::string& op) {
    StageProgram stage = run_program(plan).stages[0];
    const std::string text = operands_of(stage, op);
    const std::size_t at = text.find("_gradients");
    return text.substr(text.rfind('\n', at) + 1);
  };
  EXPECT_THAT(made_of("bwd.layer1.mb1"),
              StartsWith("output fresh_gradients 1 [0, 1360) bf16 of gradient_staging\n"));
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 2);
  EXPECT_THAT(made_of("bwd.layer1.mb0"),
              StartsWith("output fresh_gradients 1 [0, 1408) bf16 of gradients\n"));
  StageProgram stage = run_program(plan).stages[0];
  EXPECT_THAT(made_of("bwd.layer1.mb1"),
              StartsWith("accumulate joined_gradients 1 [0, 1408) bf16 of gradients\n"));
  EXPECT_THAT(operands_of(stage, "bwd.layer1.mb1"), Not(HasSubstr("gradient_sum")));
}

// FSDP's gradients are tensors of each micro-batch, which join those before.
TEST(LowerToRun, AddsTensorsOfOtherEnginesToTheSumOnGpusToo) {
  Plan plan = tiny("fsdp1", 0, 2);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 2);
  StageProgram stage = run_program(plan).stages[0];
  EXPECT_THAT(operands_of(stage, "bwd.layer1.mb1"), HasSubstr("accumulate gradient_sum"));
}

/// Without what looks at a rank's own gradients.
std::string gradients_of(StageProgram& stage, const std::string& op) {
  const std::string text = operands_of(stage, op);
  return text.substr(0, text.find("workspace own_squares"));
}

// The sum of rank 0 is in the first half of what it sent; a second operation adds it to the shard.
TEST(LowerToRun, SumsInPlaceAndAccumulatesWhereCommunicatorsDoNotAdd) {
  const Plan plan = tiny("shardwise", 3, 2);
  StageProgram adding = run_program(plan).stages[0];
  EXPECT_EQ(gradients_of(adding, "reduce.layer1.mb1"),
            "input sent_gradients 1 [0, 1360) bf16 of gradient_staging, by 680\n"
            "accumulate gradients 1 [0, 680) bf16 of gradients\n");
  EXPECT_EQ(operands_of(adding, "accumulate.layer1.mb1"), "");
  StageProgram stage = run_program(plan, StepKind::steady, 0, false).stages[0];
  EXPECT_EQ(gradients_of(stage, "reduce.layer1.mb0"),
            "input sent_gradients 1 [0, 1360) bf16 of gradient_staging, by 680\n"
            "output gradients 1 [0, 680) bf16 of gradients\n");
  EXPECT_EQ(gradients_of(stage, "reduce.layer1.mb1"),
            "accumulate sent_gradients 1 [0, 1360) bf16 of gradient_staging, by 680\n");
  EXPECT_EQ(operands_of(stage, "accumulate.layer1.mb1"),
            "input sent_gradients 1 [0, 680) bf16 of gradient_staging\n"
            "accumulate gradients 1 [0, 680) bf16 of gradients\n");
}

// FSDP1 keeps fp32 gradients and sends bf16: narrowed in their place, and widened again.
TEST(LowerToRun, ListsTheTypeThatTravelsInAnAllReduce) {
  StageProgram stage = run_program(tiny("fsdp1", 0, 1)).stages[0];
  const auto found = std::ranges::find(stage.operations, OpRole::reduce, &ProgramOp::role);
  EXPECT_THAT(operands_of(stage, name_of(stage, *found)),
              ContainsRegex("input gradients .* fp32 of gradients\n"
                            "output sent_gradients .* bf16 of gradients\n"
                            "output gradients .* fp32 of gradients\n"));
}

}  // namespace
}  // namespace shardwise::test
