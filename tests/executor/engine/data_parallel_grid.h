#pragma once

// The combinations that data parallelism has.
#include <cstdint>
#include <span>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/layout.h"

namespace shardwise::exec::test {

/// A precision and whether gradients are fp32.
struct Numeric {
  DType precision = DType::fp32;
  bool fp32_gradients = true;
};
inline constexpr Numeric kNumerics[] = {
    {DType::fp32, true}, {DType::bf16, true}, {DType::bf16, false}};

/// The switches of a layout that change nothing but when bytes move and where they lie.
struct Switches {
  bool reshard = true;
  bool double_buffer = false;
  bool remainders = false;
};
inline constexpr Switches kSwitches[] = {
    {true, false, false}, {false, false, false}, {true, true, false}, {true, false, true}};

/// How ranks share a job.
struct Ways {
  std::int32_t shard = 1;
  std::int32_t replicate = 1;
  bool outer = false;  // shards the optimizer's state
};
inline constexpr Ways kWays[] = {{3, 1, false}, {2, 2, false}, {2, 2, true}};

inline std::vector<Layout> layouts_of(const EngineProfile& engine, const Numeric& numeric,
                                      std::span<const Ways> ways = kWays) {
  std::vector<Layout> all;
  for (const int zero_stage : engine.zero_stages) {
    for (const Ways& way : ways) {
      for (const bool each : {true, false}) {
        for (const Switches& switches : kSwitches) {
          Layout layout;
          layout.zero_stage = static_cast<std::int8_t>(zero_stage);
          layout.dp_shard = way.shard;
          layout.dp_replicate = way.replicate;
          layout.outer_shards_optimizer = way.outer;
          layout.reduce_every_microbatch = each;
          layout.reshard_after_forward = switches.reshard;
          layout.double_buffer = switches.double_buffer;
          layout.store_param_remainders = switches.remainders;
          layout.fp32_gradients = numeric.fp32_gradients;
          all.push_back(layout);
        }
      }
    }
  }
  return all;
}

}  // namespace shardwise::exec::test
