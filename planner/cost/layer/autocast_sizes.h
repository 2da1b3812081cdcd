#pragma once

#include <vector>

#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/layer/operation_sizes.h"

namespace shardwise {

/// Whether passes run under torch.autocast on fp32 parameters: what products make has 16 bits, the
/// residual stream and what norms make have 32. A frozen base is in 16 bits itself.
bool autocasts(const JobSpec& job, const EngineProfile& engine);

/// Products that read a tensor in fp32, by operation of the layer; empty where nothing is cast.
std::vector<bool> casting_products(const ModelSpec& model, const LayerSpec& layer,
                                   const JobSpec& job, const EngineProfile& engine,
                                   const Layout& layout);

/// Widens what autocast leaves in fp32, where autocasts() holds; nothing changes elsewhere. Each
/// product that reads a tensor in fp32 keeps a cast of its own: only casts of parameters are
/// cached.
/// \param input_wide  the layer's input is fp32: the stream's, of all layers but the embedding
/// \pre operations are sized and connected, in forward order
/// Source: pytorch@v2.15.0:aten/src/ATen/autocast_mode.cpp, cached_cast;
/// aten/src/ATen/autocast_mode.h, AT_FORALL_LOWER_PRECISION_FP and AT_FORALL_FP32.
void widen_under_autocast(std::vector<OperationMemory>& operations, bool input_wide,
                          const OperationSizes& s);

}  // namespace shardwise
