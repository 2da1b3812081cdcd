#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/cost/layer/layer_parameters.h"
#include "planner/cost/layer/saved_tensors.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

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

/// Weight gradients that one operation of a layer has just made, in backward.
struct GradientsMade {
  std::int64_t elements = 0;  // of them, and of those that the layer made before
  PassMemory pass;            // when they begin a reduction; without gradients of weights
};

/// Backward where a weight gradient leaves as it is made: it fills a bucket, or joins that of
/// earlier micro-batches. The layer has those of one operation at once.
struct LeavingGradients {
  PassMemory fullest;
  std::vector<GradientsMade> made;  // of tensors of their own, in the order of backward
};

/// Cost of one layer of one kind to one rank for ONE micro-batch, in bytes.
///
/// Depends on the kind, tp, cp, ep, etp, micro_batch_size, sequence_parallel, recompute and cp_kind
/// of the layout, on the job and on the engine, and on nothing else: the search caches it.
struct LayerMemory {
  LayerRole role = LayerRole::block;
  LayerParameters parameters;
  std::int64_t input = 0;         // the tensor it reads; kept by this layer, not by the one before
  std::int64_t saved = 0;         // kept from forward to backward
  std::int64_t routed_saved = 0;  // part of it that grows with the tokens experts get
  PassMemory forward;
  PassMemory backward;
  LeavingGradients leaving;
  // Blocks in between that full recompute leaves alone, when it takes every n-th only.
  std::int32_t recompute_interval = 1;
  std::int64_t saved_whole = 0;
  PassMemory forward_whole;
  PassMemory backward_whole;
  LeavingGradients leaving_whole;
  // Of a head whose loss PyTorch computes under FSDP2 or FSDP1's NO_SHARD, at their fullest while
  // all else of it runs: the weights of the next layer are gathered, or the root's cast, once the
  // loss has left its temporaries.
  bool loss_apart = false;
  PassMemory forward_beside_loss;
  PassMemory backward_beside_loss;
  // Under FSDP2, of an embedding or a head with a table, which are larger than what runs beside
  // them: an embedding whose gradients were just copied to be reduced, a head whose product is done
  // and whose norm runs beside that reduction. Without the reduction's own buffers.
  bool reduces_apart = false;
  PassMemory reduction;
  // Bytes of the table's gradient, in a head that works with the embedding's table, that wait for
  // the embedding's. Autograd then makes their sum; 0 where kernels add to a buffer.
  std::int64_t tied_gradient = 0;
  // Bytes of a frozen block under FSDP1 whose checkpoint is reentrant: what is there from its
  // backward pass to the end of all layers', where the block is sharded.
  std::int64_t left_behind = 0;
  std::int64_t tables = 0;  // kept once a stage: angles of the rotary embedding, attention mask
  std::int64_t gather_buffer = 0;  // kept once a stage: Megatron's global buffer
  bool framework_gemm = false;     // multiplies through the framework's BLAS handle
  bool engine_gemm = false;        // multiplies through Transformer Engine's
  bool grouped_gemm = false;
  bool overlapped_gemm = false;  // in pieces, beside tensor-parallel transfers
  std::int32_t shapes = 0;
  std::array<MatrixShape, kMaxMatrixShapes> shape{};  // of weights whose gradients are fused
};

/// The backward pass of a layer, or of one that recompute leaves alone (`whole`). \param leave  its
/// gradients do, as they are made
inline const PassMemory& backward_of(const LayerMemory& layer, bool whole, bool leave) {
  if (leave) return whole ? layer.leaving_whole.fullest : layer.leaving.fullest;
  return whole ? layer.backward_whole : layer.backward;
}

/// Whether the kernels are our executor's, whatever the engine: they alone have the residual stream
/// apart in forward too.
inline bool own_kernels(const LayerMemory& layer) { return layer.forward.residual > 0; }

LayerMemory layer_memory(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout);

/// Same for every kind of `model`, in the order of model.kinds.
std::vector<LayerMemory> layer_memories(const ModelSpec& model, const JobSpec& job,
                                        const EngineProfile& engine, const Layout& layout);

/// Form in which the layer's tensors wait for backward, nothing recomputed but single operations.
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
