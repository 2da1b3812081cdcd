#include <gtest/gtest.h>

#include "planner/cost/memory/state_bytes.h"
#include "planner/engines/engines.h"

namespace shardwise::test {
namespace {

// By hand: three tensors of 10, 100 and 5 elements start at multiples of 64 of a bucket that two
// ranks share; the last ends at 64 + 128 + 5, the bucket at 256.
TEST(MegatronStates, LeaveGapsBetweenTensorsThatTheRankWithFewestHasLeastOf) {
  LayerMemory layer;
  layer.parameters.in_order = {{5, 1, 1, false}, {100, 1, 1, false}, {10, 1, 1, false}};
  layer.parameters.dense = 115;
  StageParts parts = layer_parts(layer, 0);
  parts.tensor_divisor = 5;
  const Layout layout = {.dp_shard = 2, .zero_stage = 1};
  const EngineProfile engine = megatron_ddp();
  EXPECT_EQ(placed_elements(parts, engine, layout, Placement::replicate, 1).dense, 256);
  // Rank 0 has [0, 128): 10 and 64 of the second; rank 1 has 36 of it and the third.
  EXPECT_EQ(placed_elements(parts, engine, layout, Placement::shard_inner, 1).dense, 74);
}

}  // namespace
}  // namespace shardwise::test
