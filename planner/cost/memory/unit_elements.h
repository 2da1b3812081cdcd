#pragma once

#include <cstdint>
#include <span>

#include "planner/cost/layer/layer_memory.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Elements of a unit of gathering and reduction on this rank, whole.
struct UnitElements {
  std::int64_t dense = 0;   // trained
  std::int64_t routed = 0;  // trained, of routed experts
  std::int64_t frozen = 0;  // gathered, never reduced
  // Padded as the engine pads what it shards: multiples of the ranks that share them.
  std::int64_t padded_dense = 0;
  std::int64_t padded_routed = 0;
  std::int64_t padded_frozen = 0;

  bool padded_whole = false;  // a rank that has it whole has room for that too: pads_whole_units()

  std::int64_t trained() const { return dense + routed; }
  std::int64_t elements() const { return dense + routed + frozen; }
  /// Elements a rank has room for that has it whole, of gradients and of weights.
  std::int64_t trained_room() const {
    return padded_whole ? padded_dense + padded_routed : trained();
  }
  std::int64_t room() const {
    return padded_whole ? padded_dense + padded_routed + padded_frozen : elements();
  }
};
/// Elements of one layer; trained parameters that fill root_buckets() are none of it.
/// \param copied  of the token table of another stage, which the layer holds too
/// \param multiple  shard_multiple
UnitElements unit_elements(const LayerMemory& layer, std::int64_t copied,
                           const EngineProfile& engine, const Layout& layout,
                           std::int64_t multiple);

/// Whether units are padded where a rank has them whole too: Megatron-FSDP's buffers are, but under
/// no_shard. Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/
/// param_and_grad_buffer.py:285-288, 1279.
bool pads_whole_units(const EngineProfile& engine, const Layout& layout);

/// Megatron with its distributed optimizer gives a token table that the first and the last stage
/// hold (`shared_embedding`) a bucket of its own on both, even where all else of the stage is one.
/// Source: Megatron-LM@d98e8a64:megatron/core/optimizer/distrib_optimizer.py:530-583;
/// megatron/core/models/common/language_module/language_module.py:263-290.
bool keeps_shared_table_apart(const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
