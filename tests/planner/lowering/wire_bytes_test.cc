#include <gtest/gtest.h>

#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

/// Elements of the whole small model on one rank.
constexpr std::int64_t kDataParallel = 8;

Layout sharded(int zero_stage) {
  Layout layout;
  layout.dp_shard = kDataParallel;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  return layout;
}

// The distributed optimizer, a reduction of all gradients on the last micro-batch and a
// gather of all parameters, whatever the number of micro-batches.
TEST(WireBytes, AreThoseOfZeroOne) {
  for (const std::int64_t m : {1, 2, 5}) {
    const Plan plan = small_plan(megatron_ddp(), sharded(1), m);
    const StageProgram stage = lower(plan).stages.front();
    const std::int64_t n = plan.model.parameter_count();
    EXPECT_EQ(wire_bytes(stage, OpRole::reduce), 4 * n);
    EXPECT_EQ(wire_bytes(stage, OpRole::gather_updated), 2 * n);
  }
}

}  // namespace
}  // namespace shardwise::test
