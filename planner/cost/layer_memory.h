#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/cost/saved_tensors.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"

namespace shardwise {

/// Equal tensors of one layer on one rank, as sharding sees them.
struct TensorGroup {
  std::int64_t rows = 0;          // dimension 0, the one that FSDP2 cuts
  std::int64_t row_elements = 0;  // product of the others
  std::int64_t count = 0;
  bool routed = false;
};
inline constexpr int kMaxTensorGroups = 24;

/// What one rank holds of a parameter after tp, ep and etp: `count` tensors [rows, row_elements].
struct LocalTensor {
  std::int64_t rows = 0;
  std::int64_t row_elements = 1;
  std::int64_t count = 1;
  std::int64_t elements() const { return rows * row_elements * count; }
};
LocalTensor local_tensor(const ParameterSpec& parameter, const EngineProfile& engine,
                         const Layout& layout);

/// Elements of the parameters that one rank holds of one layer, after tp, ep and etp.
struct LayerParameters {
  std::int64_t dense = 0;              // trained; data parallel over dp x cp
  std::int64_t routed = 0;             // trained routed experts; data parallel over edp
  std::int64_t frozen = 0;             // not trained: weights without gradients or optimizer state
  std::int64_t vocabulary = 0;         // part of dense: tables over the vocabulary
  std::int64_t frozen_vocabulary = 0;  // part of frozen
  std::int64_t narrow_dense = 0;       // part of dense: matrices multiplied in 8 bits
  std::int64_t narrow_routed = 0;      // part of routed
  std::int64_t replicated = 0;  // part of dense: whole on every tp rank; under sequence parallelism
                                // their gradients differ and are summed over tp
  std::int64_t head_norms = 0;  // part of replicated: norms of single heads, whose gradients differ
                                // over tp in any case
  std::int64_t counted_experts = 0;  // experts whose load an untrained bias evens out
  std::int64_t tensors = 0;
  std::int64_t chunk_lcm = 1;  // least common multiple of row_elements over the tensors
  std::int32_t groups = 0;
  std::array<TensorGroup, kMaxTensorGroups> group{};
  std::vector<TensorGroup> in_order;  // one a trained parameter, in the order of the layer's
};

/// The shape of a weight matrix on one rank.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};
inline constexpr int kMaxMatrixShapes = 12;

/// One of the two passes of a layer at its fullest, in bytes. `peak` counts from the moment before
/// the layer starts, so it includes what the layer keeps; the others are parts of it.
struct PassMemory {
  std::int64_t peak = 0;
  std::int64_t kept = 0;        // activations of this layer kept for backward
  std::int64_t recomputed = 0;  // activations computed again
  std::int64_t loss = 0;        // logits, their copies and gradients
  std::int64_t gradients = 0;   // weight gradients made so far, before their reduction
  std::int64_t working() const { return peak - kept - recomputed - loss - gradients; }
  // Parts of loss and of working().
  std::int64_t loss_kept = 0;  // by what has run; the rest comes and goes with one operation
  std::int64_t handed = 0;     // forward: what the operation reads and nobody keeps; backward: the
                               // gradient it is given
  std::int64_t made = 0;       // forward: what it hands on; backward: the gradient it hands back
  std::int64_t residual = 0;   // gradient of the residual stream, alive while a branch runs
  std::int64_t temporary = 0;  // of its kernels
};

/// What one layer of one kind costs one rank for ONE micro-batch, in bytes.
///
/// Depends on the kind, tp, cp, ep, etp, micro_batch_size, sequence_parallel, recompute and cp_kind
/// of the layout, on the job and on the engine, and on nothing else: the search caches it.
struct LayerMemory {
  LayerRole role = LayerRole::block;
  LayerParameters parameters;
  std::int64_t input = 0;  // the tensor it is handed; kept by this layer, not by the one before
  std::int64_t saved = 0;  // kept from forward to backward
  std::int64_t routed_saved = 0;  // part of it that grows with the tokens experts get
  PassMemory forward;
  PassMemory backward;
  // Of the blocks in between that full recompute leaves alone, when it takes every n-th only.
  std::int32_t recompute_interval = 1;
  std::int64_t saved_whole = 0;
  PassMemory forward_whole;
  PassMemory backward_whole;
  std::int64_t tables = 0;  // kept once a stage: angles of the rotary embedding, attention mask
  std::int64_t gather_buffer = 0;  // kept once a stage: Megatron's global buffer
  bool framework_gemm = false;     // multiplies through the framework's BLAS handle
  bool engine_gemm = false;        // multiplies through Transformer Engine's
  bool grouped_gemm = false;
  bool overlapped_gemm = false;  // in pieces, beside tensor-parallel transfers
  std::int32_t shapes = 0;
  std::array<MatrixShape, kMaxMatrixShapes> shape{};  // of weights whose gradients are fused
};

LayerMemory layer_memory(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout);

/// Same for every kind of `model`, in the order of model.kinds.
std::vector<LayerMemory> layer_memories(const ModelSpec& model, const JobSpec& job,
                                        const EngineProfile& engine, const Layout& layout);

/// How the layer's tensors wait for backward, nothing recomputed but single operations.
SavedTensors layer_saves(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout);

/// Bytes that one operation keeps from forward to backward, for reports.
struct KeptActivation {
  std::string operation;
  std::int64_t bytes = 0;
  std::int64_t statistics = 0;  // part of it that published formulas leave out
};
std::vector<KeptActivation> kept_activations(const ModelSpec& model, const LayerSpec& layer,
                                             const JobSpec& job, const EngineProfile& engine,
                                             const Layout& layout);

}  // namespace shardwise
