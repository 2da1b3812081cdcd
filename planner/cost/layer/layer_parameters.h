#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost/layer/registered_tensors.h"
#include "planner/cost/layer/tensor_chunks.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Equal tensors of one layer on one rank, as sharding sees them.
struct TensorGroup {
  std::int64_t rows = 0;          // dimension 0, the one that FSDP2 cuts
  std::int64_t row_elements = 0;  // product of the others
  std::int64_t count = 0;
  bool routed = false;
};
inline constexpr int kMaxTensorGroups = 24;

/// Part of a parameter on one rank after tp, ep and etp: `count` tensors [rows, row_elements].
struct LocalTensor {
  std::int64_t rows = 0;
  std::int64_t row_elements = 1;
  std::int64_t count = 1;
  std::int64_t elements() const { return rows * row_elements * count; }
};
/// \param copies  ranks that have the same part of it: parameter_copies()
LocalTensor local_tensor(const ParameterSpec& parameter, const EngineProfile& engine,
                         const Layout& layout, std::int64_t copies = 1);
/// Part of what an engine keeps as one tensor: rows of one element, where it has several.
LocalTensor local_tensor(const LayerSpec& layer, const RegisteredTensor& registered,
                         const EngineProfile& engine, const Layout& layout);

/// Elements of the parameters that one rank holds of one layer, after tp, ep and etp.
struct LayerParameters {
  std::int64_t dense = 0;              // trained; data parallel over dp x cp
  std::int64_t routed = 0;             // trained routed experts; data parallel over edp
  std::int64_t frozen = 0;             // not trained: weights without gradients or optimizer state
  std::int64_t vocabulary = 0;         // part of dense: tables over the vocabulary
  std::int64_t frozen_vocabulary = 0;  // part of frozen
  std::int64_t cut_by_rows = 0;    // part of routed: of experts that are one tensor, dimension 1
  std::int64_t narrow_dense = 0;   // part of dense: matrices multiplied in 8 bits
  std::int64_t narrow_routed = 0;  // part of routed
  std::int64_t replicated = 0;  // part of dense: whole on every tp rank; under sequence parallelism
                                // their gradients differ and are summed over tp
  std::int64_t head_norms = 0;  // part of replicated: norms of single heads, whose gradients differ
                                // over tp in any case
  std::int64_t copied_heads = 0;  // part of dense: of keys and values, that several tp ranks have
  std::int64_t counted_experts = 0;  // whose load an untrained bias evens out: a buffer, as is the
                                     // count of their tokens, whole on every rank
  std::int64_t tensors = 0;
  TensorChunks chunks;         // of the dense tensors, where units are padded (ShardPadding::unit)
  TensorChunks routed_chunks;  // and of those of routed experts
  std::int32_t groups = 0;
  std::array<TensorGroup, kMaxTensorGroups> group{};
  std::vector<TensorGroup> in_order;  // trained, as registered_tensors() orders them
};

/// Whether routed experts have buckets, and ranks, of their own. Megatron's are in the dense
/// buckets where every rank holds all of them, as it does the rest of the layer; Megatron-FSDP
/// parts them by name. Source:
/// Megatron-LM@d98e8a64:megatron/core/extensions/transformer_engine.py:1236-1240 (use_expert_pgs);
/// megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py:1787.
bool routed_apart(const EngineProfile& engine, const Layout& layout);

/// Whether a frozen model's matrices that Transformer Engine multiplies in 8 bits are kept so, with
/// no other copy. Recipes that ask for it make the transposes that Hopper's products read for each
/// product in backward, and keep none.
/// Source: mlcommons/training_results_v5.1@4da2d1cd:AMD/benchmarks/llama2_70b_lora/implementations/
/// MI325X_EPYC_9575F_pytorch_llama2_70b/src/conf/megatron_gpt_peft_tuning_config.yaml, fp8_params
/// and disable_parameter_transpose_cache; NVIDIA/Megatron-LM:megatron/core/extensions/
/// transformer_engine.py, _is_first_microbatch.
bool keeps_frozen_narrow(const JobSpec& job, const EngineProfile& engine, const Layout& layout);

LayerParameters layer_parameters(const LayerSpec& layer, const JobSpec& job,
                                 const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
