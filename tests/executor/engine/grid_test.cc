// Whatever the lowering emits for data parallelism runs, and says the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/cost/legality.h"
#include "planner/engines/engines.h"
#include "planner/lowering/lower.h"
#include "planner/spec/names.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

/// A precision and whether gradients are fp32.
struct Numeric {
  DType precision = DType::fp32;
  bool fp32_gradients = true;
};
constexpr Numeric kNumerics[] = {{DType::fp32, true}, {DType::bf16, true}, {DType::bf16, false}};

/// The two switches of a layout that change nothing but when bytes move and where they lie.
struct Switches {
  bool reshard = true;
  bool double_buffer = false;
};
constexpr Switches kSwitches[] = {{true, false}, {false, false}, {true, true}};

std::vector<Layout> layouts_of(const EngineProfile& engine, const Numeric& numeric) {
  std::vector<Layout> all;
  for (const int zero_stage : engine.zero_stages) {
    for (const auto& [shard, replicate, outer] :
         {std::tuple{3, 1, false}, {2, 2, false}, {2, 2, true}}) {
      for (const bool each : {true, false}) {
        for (const Switches& switches : kSwitches) {
          Layout layout;
          layout.zero_stage = static_cast<std::int8_t>(zero_stage);
          layout.dp_shard = shard;
          layout.dp_replicate = replicate;
          layout.outer_shards_optimizer = outer;
          layout.reduce_every_microbatch = each;
          layout.reshard_after_forward = switches.reshard;
          layout.double_buffer = switches.double_buffer;
          layout.fp32_gradients = numeric.fp32_gradients;
          all.push_back(layout);
        }
      }
    }
  }
  return all;
}

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

}  // namespace
}  // namespace shardwise::exec::test
