#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// A layer with trained tensors outside the units, embedding or head, as a chunk has it.
struct RootLayer {
  const LayerMemory* memory = nullptr;
  TensorGroup copied;  // behind its own: the token table of another stage; no rows: none
};

/// Trained parameters outside the units that are gathered and reduced together.
struct RootBucket {
  std::int64_t elements = 0;
  TensorChunks chunks;
  std::int64_t padded = 0;  // with gaps between them and what pads its end
  std::size_t first = 0;  // of the layers given: the first one with a tensor in it. Forward gathers
                          // it there, and there backward completes its gradients
  std::size_t last = 0;   // and the last one, with which backward begins them
};

/// Whether trained parameters outside an engine's units fill buckets: Megatron-FSDP's do where
/// something is sharded.
bool fills_root_buckets(const EngineProfile& engine, const Layout& layout);

/// The buckets of one chunk, in the order of registration.
///
/// Tensors follow one another as the model registers them. The one with which a bucket has
/// bucket_limit() elements, without padding, is its last. A token table that two stages hold is a
/// bucket of its own. In a bucket they lie as tensor_chunks() says.
/// \param layers  in forward order
/// \param table_apart  two stages hold the token table
/// \pre fills_root_buckets()
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/
/// param_and_grad_buffer.py:1776-1786, 1825-1906.
std::vector<RootBucket> root_buckets(std::span<const RootLayer> layers, bool table_apart,
                                     const EngineProfile& engine, const Layout& layout);

/// A layer beside the others of its chunk.
struct RootPlace {
  const LayerMemory* before = nullptr;  // the embedding of its chunk, in front of a head …
  const LayerMemory* after = nullptr;   // … and the head, behind an embedding
  TensorGroup copied;                   // RootLayer
  bool table_apart = false;             // root_buckets()
};
/// The buckets of which a layer has the first tensor, and of those that it begins in backward and
/// another layer completes, whether there are any.
struct OwnRoots {
  std::vector<RootBucket> buckets;
  bool begins_others = false;
  std::int64_t padded() const;
};
/// None where nothing fills them. \pre both layers of `place` outlive the call
OwnRoots own_roots(const LayerMemory& layer, const RootPlace& place, const EngineProfile& engine,
                   const Layout& layout);

/// Gaps between the tensors of a stage whose gradients every rank has whole: Megatron-FSDP's
/// without sharding, where units and what is outside them fill the same buckets. 0 elsewhere.
/// Source: as of root_buckets(); megatron/core/distributed/fsdp/mcore_fsdp_adapter.py:163-173.
std::int64_t gaps_of_whole(const StageParts& parts, const EngineProfile& engine,
                           const Layout& layout);

/// Those of a stage, chunk by chunk: `first` and `last` are layers of StageParts::in_order.
std::vector<RootBucket> root_buckets(const StageParts& parts, const EngineProfile& engine,
                                     const Layout& layout);

}  // namespace shardwise
