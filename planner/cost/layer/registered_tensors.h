#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// A tensor as the engine's own modules hold it: one parameter of the checkpoint, or the rows of
/// several. Indices into LayerSpec::parameters.
using RegisteredTensor = std::vector<std::int32_t>;

/// All parameters of a layer, in the order in which the engine's modules register them: buckets of
/// gradients are filled from the last to the first.
///
/// Megatron has one matrix for queries, keys and values (`linear_qkv`; in cross-attention one for
/// keys and values) and one for gate and up (`linear_fc1`), and one bias for each; and an attention
/// registers `linear_proj` before them. Under Transformer Engine, Megatron's default, the norm in
/// front of self-attention is registered with `linear_qkv`, so behind `linear_proj`; latent
/// attention and cross-attention keep a norm of their own in front of both. Routed experts are in
/// the order of a grouped GEMM: `linear_fc1` of all, then `linear_fc2` of all; LayerParameters has
/// them expert by expert where JobSpec::grouped_gemm is off. Other engines train modules that have
/// the checkpoint's tensors, in its order. PyTorch's DistributedDataParallel rebuilds its buckets
/// in the order of backward, so its tensors are in that of forward. Source:
/// Megatron-LM@d98e8a64:megatron/core/transformer/attention.py:413, 1692, 2109-2121;
/// multi_latent_attention.py:221, 510-604; transformer_layer.py:368-456; mlp.py; moe/moe_layer.py;
/// megatron/core/models/gpt/gpt_layer_specs.py, get_gpt_layer_with_transformer_engine_submodules.
std::vector<RegisteredTensor> registered_tensors(const LayerSpec& layer, const JobSpec& job,
                                                 const EngineProfile& engine);
/// Tensors as Megatron's modules hold and register them.
std::vector<RegisteredTensor> megatron_tensors(const LayerSpec& layer);

/// Dimension 1 of a matrix as Megatron's modules hold it, [out, in], where a checkpoint may have
/// [in, out]: GPT-2's Conv1D. \param rows, row_elements  of one rank, as in the checkpoint
std::int64_t module_row(const ParameterSpec& parameter, std::int64_t rows,
                        std::int64_t row_elements);

}  // namespace shardwise
