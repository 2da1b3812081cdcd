#pragma once

#include <cstdint>
#include <span>

#include "planner/cost/layer_memory.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/layout.h"

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

  std::int64_t trained() const { return dense + routed; }
  std::int64_t elements() const { return dense + routed + frozen; }
};
/// Of one layer. \param copied  of the token table of another stage, which the layer holds too
/// \param multiple  shard_multiple
UnitElements unit_elements(const LayerMemory& layer, std::int64_t copied,
                           const EngineProfile& engine, const Layout& layout,
                           std::int64_t multiple);

/// Of the token table, on this rank; 0 where no kind of layer is an embedding.
std::int64_t table_elements(std::span<const LayerMemory> by_kind);

}  // namespace shardwise
