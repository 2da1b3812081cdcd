#pragma once

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Whether a layer is outside the blocks: an embedding or a head.
constexpr bool is_outside(LayerRole role) {
  return role == LayerRole::embedding || role == LayerRole::head;
}

/// A unit of FSDP1 is one flat parameter, of which its tensors are views: when all gradients of a
/// unit are there, autograd joins them in a flat tensor beside them, which is reduced. Embedding,
/// final norm and head are one unit, the root: what the head makes waits for the embedding's
/// gradients, the last ones of backward. So it is of shards and of whole weights (NO_SHARD), but
/// our kernels add whole gradients to the rank's own (`own_kernels`).
/// Source: pytorch/pytorch@v2.15.0:torch/distributed/fsdp/_flat_param.py:1920-1944 (views by
/// torch.split, whose backward joins their gradients).
bool joins_root(const EngineProfile& engine, const Layout& layout, bool own_kernels);

}  // namespace shardwise
