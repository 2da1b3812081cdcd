// Whatever the lowering emits for data parallelism runs, and says the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/cost/layer/gradients_join.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/lowering/lower.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "tests/executor/engine/data_parallel_grid.h"
#include "tests/executor/engine/plain_world.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

/// Plans of equal keys have equal losses: docs/executor.md, "The order of sums" and "Where numbers
/// are rounded".
std::string key_of(const Plan& plan, std::int64_t num_microbatches) {
  const LoweringContext context = lowering_context(plan, Granularity::layer, false);
  const StateTypes types = state_types(context);
  const Layout& layout = plan.layout;
  const bool once =
      layout.zero_stage < 2 || !layout.reduce_every_microbatch || num_microbatches == 1;
  std::string key =
      fmt::format("{} x {}, {} micro-batches{}, {} {} {}", layout.dp_shard, layout.dp_replicate,
                  num_microbatches, once ? " reduced once" : "", name_of(types.compute),
                  name_of(types.made), name_of(types.reduced));
  // What sums of several micro-batches are kept in.
  if (num_microbatches > 1 && types.made != DType::fp32) {
    key += fmt::format(" {} {}", plan.engine.name, layout.zero_stage < 2);
  }
  return key;
}

TEST(DataParallelGrid, RunsWithTheLossesThatItsOrderOfSumsAndItsRoundingSay) {
  std::map<std::string, Curve> curves;
  int plans = 0;
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const Numeric& numeric : kNumerics) {
      for (const Layout& layout : layouts_of(*find_engine(name), numeric)) {
        for (const std::int64_t num_microbatches : {1, 2}) {
          if (num_microbatches == 1 && !layout.reduce_every_microbatch) continue;  // it is the last
          Plan plan = laptop_plan(name, layout, num_microbatches, true);
          plan.job.precision = numeric.precision;
          if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) continue;
          const StageProgram program = lower(plan).stages.front();
          for (const ProgramOp& op : program.operations) {
            ASSERT_TRUE(has_kernel(program, op)) << name << ": " << name_of(program, op);
          }
          const Curve curve = train(plan, 2);
          const auto& [same, fresh] = curves.try_emplace(key_of(plan, num_microbatches), curve);
          EXPECT_EQ(curve, same->second)
              << same->first << ": " << name << " ZeRO-" << int{layout.zero_stage}
              << (layout.outer_shards_optimizer ? " HFSDP" : "");
          ++plans;
        }
      }
    }
  }
  EXPECT_GT(plans, 400);
  EXPECT_EQ(curves.size(), 40U);
}

/// Takes equal pieces only, as NCCL does.
std::unique_ptr<World> equal_pieces(World& of) {
  return std::make_unique<PlainWorld>(
      of, CommunicatorTraits{
              .sums_in_rank_order = true, .adds_into_shard = true, .ragged_shards = false});
}

// What pads a unit of a GPU's plan changes nothing but where its pieces end.
TEST(DataParallelGrid, HasTheLossesOfCpusByEqualPiecesOnGpus) {
  int plans = 0;
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const Numeric& numeric : {kNumerics[0], kNumerics[2]}) {
      for (const Layout& layout : layouts_of(*find_engine(name), numeric)) {
        if (layout.zero_stage == 0 || layout.double_buffer) continue;
        Plan plan = laptop_plan(name, layout, 2, true);
        plan.job.precision = numeric.precision;
        if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) continue;
        const Curve curve = train(plan, 2);
        plan.cluster = *with_gpus(*find_cluster("dgx-h100"), layout.world());
        const Curve on_gpus = train(plan, 2, {}, equal_pieces);
        const std::string what =
            fmt::format("{} ZeRO-{} {}", name, int{layout.zero_stage}, name_of(numeric.precision));
        const bool tensors = plan.engine.gradient_buffer == GradientBuffer::copy_in;
        if (tensors || !gradients_join(layout, 2)) {
          EXPECT_EQ(on_gpus, curve) << what;
        } else {  // a GPU adds the second micro-batch's gradients to the sum one by one
          const double tolerance = numeric.precision == DType::bf16 ? 0.02 : 1e-6;
          EXPECT_NEAR(on_gpus.losses.back(), curve.losses.back(), tolerance * curve.losses.back())
              << what;
          EXPECT_NEAR(on_gpus.norms.back(), curve.norms.back(), tolerance * curve.norms.back())
              << what;
        }
        ++plans;
      }
    }
  }
  EXPECT_GT(plans, 100);
}

// 257 x 18 elements of the table, of which four ranks have 1157, 1157, 1157 and 1155.
TEST(ProgramBinder, RefusesAPlanForCpusWhereCollectivesTakeEqualPieces) {
  Layout layout;
  layout.zero_stage = 3;
  layout.dp_shard = 4;
  const Plan plan = laptop_plan("shardwise", layout, 1, true);
  try {
    train(plan, 1, {}, equal_pieces);
    ADD_FAILURE() << "nothing was refused";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "/cluster: gather.layer0.mb0 moves 4626 elements to 4 ranks by 1157, and "
                 "collectives of this device take equal pieces: a plan for a cluster of GPUs has "
                 "them");
  }
}

}  // namespace
}  // namespace shardwise::exec::test
