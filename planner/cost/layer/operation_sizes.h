#pragma once

#include <cstdint>

#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/spec/text/units.h"

namespace shardwise {

inline constexpr std::int64_t kFp32Bytes = 4;
inline constexpr std::int64_t kMaskBytes = 1;
/// Bytes each rank knows of a row whose logits are cut over ranks: its largest logit, the sum of
/// e^(logit - largest), and the target's logit.
inline constexpr std::int64_t kRowStatisticsBytes = 3 * kFp32Bytes;

/// Whether jobs in 8 bits multiply `op` so: matrices of the blocks, but the router's.
inline bool has_narrow_matrix(const OperationSpec& op) {
  return op.kind == OpKind::gemm && op.tp != TpSplit::vocab && !op.name.ends_with("router_proj");
}

/// Sizes that all operations of a model share on one rank, for one micro-batch.
struct OperationSizes {
  Kernels kernels = Kernels::eager;
  AttentionKernel attention = AttentionKernel::flash;
  LossKernel loss = LossKernel::fused;
  bool repeats = false;  // JobSpec::repeat_key_values
  RmsNormKernel rms_norm = RmsNormKernel::composite;
  ContextParallelKind cp_kind = ContextParallelKind::ring;
  std::int64_t bytes = 2;     // an element of an activation
  std::int64_t tokens = 0;    // of this rank's slice of the sequences (cp)
  std::int64_t spread = 0;    // tokens outside tensor-parallel regions: cut by sequence parallel
  std::int64_t routed = 0;    // tokens x copies that meet this rank's routed experts
  std::int64_t sequence = 0;  // keys a query can attend to
  std::int64_t batch = 1;
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;
  std::int64_t tp = 1;
  std::int64_t head_copies = 1;  // tp ranks that have the same heads of keys and values
  std::int64_t cp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t experts_per_token = 0;
  bool fp32_probabilities = false;  // what experts made is multiplied in fp32: transformers 5.23.0
                                    // has them so but for Qwen and gpt-oss
  std::int64_t local_experts = 0;
  std::int64_t vocabulary_multiple = 1;
  std::int64_t chunk_rows = 0;  // of our chunked loss, JobSpec::loss_chunk_rows
  bool megatron = false;
  bool sequence_parallel = false;
  bool dropout = false;
  bool relu = false;            // the activation function is …
  bool gelu_new = false;        // … or is that one, of several operators
  bool frozen = false;          // only adapters are trained …
  bool names_adapters = false;  // … those that the model has; else of queries and values
  bool wide_adapters = false;   // which multiply in fp32: multiplies_adapters_wide()
  bool autocasts = false;       // shardwise::autocasts()
  bool narrow = false;          // products in 8 bits (or 4)
  bool keeps_narrow = false;    // what a product keeps of its input is the 8-bit copy
  bool gathers_narrow = false;  // its matrix arrives in 8 bits
  DType precision = DType::bf16;
  SavedFormat saved_inputs = SavedFormat::as_computed;  // of linear layers
  Fp8Recipe recipe = Fp8Recipe::tensorwise;
  bool fuses_weight_gradient = false;  // wgrad accumulates into the gradient buffer directly

  /// One matrix for queries, keys and values, and for gate and up.
  bool joins_projections() const { return own_modules(); }
  /// Modules written for training at scale (Megatron's, ours) rather than PyTorch's: they keep what
  /// their backward needs and no more, with any kernels below them.
  bool own_modules() const { return megatron || kernels == Kernels::planned; }
  /// RMSNorms are several operators of PyTorch's, in fp32.
  bool composes_norms() const {
    return kernels == Kernels::eager && !own_modules() && rms_norm == RmsNormKernel::composite;
  }
  /// Keys and values are repeated for every query head that shares them: by the model, or by
  /// kernels that take no groups. PyTorch's attention takes them (scaled_dot_product_attention,
  /// enable_gqa).
  bool repeats_keys() const {
    const bool takes_groups =
        attention != AttentionKernel::materialised && attention != AttentionKernel::flash1;
    return !joins_projections() && (repeats || !takes_groups);
  }
  /// The activation function is several operators of PyTorch's.
  bool composes_activation(const OperationSpec& op) const {
    return gelu_new && !op.gated && kernels == Kernels::eager && !own_modules();
  }
  /// PyTorch's context parallelism merges the outputs of its steps head by head.
  bool joins_ring_outputs() const {
    return cp > 1 && !own_modules() && cp_kind != ContextParallelKind::ulysses &&
           attention != AttentionKernel::materialised;
  }
  /// Our head computes loss and gradients in backward, by rows: logits do not outlive their rows.
  bool by_rows() const {
    return kernels == Kernels::planned &&
           (loss == LossKernel::chunked || loss == LossKernel::fused);
  }
  /// Tokens whose logits exist at once, `op` being the head's product or the loss.
  std::int64_t loss_rows(const OperationSpec& op) const;
  /// Times our head works on so many, one after the other. \pre by_rows()
  std::int64_t loss_pieces(const OperationSpec& op) const {
    return loss == LossKernel::chunked ? ceil_div(tokens, loss_rows(op)) : 1;
  }
  /// Bytes of a copy of so many elements that a narrow product reads, with its scales.
  std::int64_t narrow_bytes(std::int64_t elements) const;
  /// Whether `op` is multiplied in 8 bits.
  bool is_narrow(const OperationSpec& op) const { return narrow && has_narrow_matrix(op); }
  /// Width of a head in which FlashAttention's backward sums the gradient of queries in fp32:
  /// PyTorch's is a multiple of 32 or 64. Source:
  /// pytorch@v2.15.0:aten/src/ATen/native/transformers/ cuda/flash_attn/flash_api.cpp, mha_bwd,
  /// dq_accum.
  std::int64_t summed_width(const OperationSpec& op) const;
  /// The part of `width` that a rank has of what `op` makes.
  std::int64_t cut(std::int64_t width, const OperationSpec& op) const;
};

OperationSizes operation_sizes(const ModelSpec& model, const JobSpec& job,
                               const EngineProfile& engine, const Layout& layout);

/// Whether adapters in fp32 cast their input and multiply in fp32: under PyTorch's FSDP, which a
/// single GPU is too, unless autocast or FSDP's mixed precision casts them, which is not modelled.
/// Source: peft@v0.21.2:src/peft/tuners/lora/layer.py, Linear.forward, and
/// tuners_utils.py, cast_adapter_dtype and _cast_input_dtype.
bool multiplies_adapters_wide(const JobSpec& job, const EngineProfile& engine);

// Sizes what each kind of operation keeps and needs; the caller fills in what it reads.
void size_norm(OperationMemory& m, const OperationSizes& s);
void size_gemm(OperationMemory& m, const OperationSizes& s);
/// Adds what an adapter beside the product of a sized `m`, or the 4 bits of its matrix, take.
void size_adapter(OperationMemory& m, const OperationSizes& s, const AdaptedLinear& linear);
void size_attention(OperationMemory& m, const OperationSizes& s);
void size_activation(OperationMemory& m, const OperationSizes& s);
void size_rope(OperationMemory& m, const OperationSpec& core, const OperationSizes& s);
void size_residual(OperationMemory& m, const OperationSizes& s);
void size_router(OperationMemory& m, const OperationSizes& s);
void size_dispatch(OperationMemory& m, const OperationSizes& s);
void size_combine(OperationMemory& m, const OperationSizes& s);
void size_embedding(OperationMemory& m, const OperationSizes& s);
void size_loss(OperationMemory& m, const OperationSizes& s);

}  // namespace shardwise
