#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/machine/dtype.h"
#include "planner/spec/text/units.h"

namespace shardwise {

enum class AttentionKernel : std::uint8_t {
  flash,         // FlashAttention: never materialises [seq, seq]; batch before sequence
  flash1,        // the first FlashAttention and its Triton version
  cudnn,         // cuDNN's fused attention: the same in either order
  materialised,  // scores, softmax output and dropout mask are tensors
};

enum class LossKernel : std::uint8_t {
  by_engine,     // what the engine's users usually run (planner/cost/software/usual_kernels.h)
  materialised,  // logits, an fp32 copy and their gradient
  fused,         // fused cross-entropy: logits once, gradient in place
  fused_fp32,    // fused on fp32 logits, out of place (Megatron's "native" fusion)
  chunked,       // linear + cross-entropy by chunks: logits never whole
};

/// Who wrote the kernels, which decides what an operation keeps for backward.
enum class Kernels : std::uint8_t {
  by_engine,           // what the engine usually runs with
  eager,               // PyTorch operators one by one
  compiled,            // torch.compile: pointwise operations are computed again
  transformer_engine,  // NVIDIA's fused modules (Megatron)
  planned,             // our executor
};

/// How PyTorch's operators compute an RMSNorm, where no other kernels do.
enum class RmsNormKernel : std::uint8_t {
  by_engine,  // what the engine's users usually run
  fused,      // torch.nn.RMSNorm: one kernel on GPUs since PyTorch 2.9
  composite,  // in fp32, one operator after the other: transformers' own module
};

/// How AdamW updates under engines that take any optimizer of PyTorch's: torch.optim's own, or
/// those of bitsandbytes.
enum class AdamwKernel : std::uint8_t {
  fused,       // one kernel, no temporaries
  foreach,     // PyTorch's own choice on GPUs: all tensors together, a root of each second moment
  for_loop,    // tensor by tensor: the root and its quotient
  bnb_8bit,    // bitsandbytes' AdamW8bit: moments in 8 bits, a scale for each block
  paged,       // its PagedAdamW: fp32 moments in managed memory
  paged_8bit,  // its PagedAdamW8bit: both
};
/// Whether the moments of large tensors are in 8 bits.
constexpr bool is_blockwise(AdamwKernel kernel) {
  return kernel == AdamwKernel::bnb_8bit || kernel == AdamwKernel::paged_8bit;
}
/// Whether they are in managed memory, which the host has where the GPU has no room.
constexpr bool is_paged(AdamwKernel kernel) {
  return kernel == AdamwKernel::paged || kernel == AdamwKernel::paged_8bit;
}
/// Whether they are those of bitsandbytes.
constexpr bool is_bitsandbytes(AdamwKernel kernel) {
  return is_blockwise(kernel) || is_paged(kernel);
}

/// Elements of one 8-bit scale: they say how often a matrix is read and written to be cast.
enum class Fp8Recipe : std::uint8_t {
  delayed,                // a matrix, its scale from earlier steps
  tensorwise,             // a matrix, its scale from its own largest value
  rowwise,                // a row of one operand, a column of the other
  rowwise_wide_gradient,  // the same, with weight gradients in 16 bits
  block,                  // 32 elements (MXFP8) or a tile
};

/// Number format in which a tensor is saved for backward.
enum class SavedFormat : std::uint8_t {
  as_computed,
  fp8,   // 8 bits, and a scale for 128 elements
  e5m6,  // 12 bits, and a scale for 128 elements
};

/// Work that runs beside tensor-parallel communication.
enum class TpOverlap : std::uint8_t {
  by_engine,  // what the engine usually does
  none,
  backward,   // backward only: beside the gradient GEMM that does not need it (Megatron)
  pipelined,  // GEMMs cut into tp pieces, each beside the transfer of another (user buffers)
};

/// How tokens reach their experts.
enum class ExpertDispatch : std::uint8_t {
  all_to_all,    // every copy of a token travels
  deduplicated,  // once to each node, then once to each rank that needs it (DeepEP, hybrid EP)
};

enum class Optimizer : std::uint8_t { adamw, sgd, sgd_momentum };

/// JobSpec::loss_chunk_rows that follow from the layout (planner/estimate/loss_rows.h).
inline constexpr std::int64_t kOpenLossRows = -1;
/// Rows that open ones are priced as before they are decided.
inline constexpr std::int64_t kUsualLossRows = 2048;

/// Training job, whatever the layout: fixed by the user, never searched.
struct JobSpec {
  std::int64_t sequence_length = 4096;  // tokens of one sequence
  std::int64_t global_batch_size = 0;  // sequences a step; 0 = one micro-batch a data-parallel rank
  DType precision = DType::bf16;       // of forward and backward: bf16, fp16, fp32, fp8
  bool fp8_parameter_gather = false;   // weights are kept and travel in 8 bits (precision fp8)
  Fp8Recipe fp8_recipe = Fp8Recipe::tensorwise;
  Optimizer optimizer = Optimizer::adamw;
  AdamwKernel adamw = AdamwKernel::fused;
  DType main_dtype = DType::fp32;  // of the weights that the optimizer updates
  DType moment_dtype = DType::fp32;
  bool fused_gradient_accumulation =
      true;  // weight gradients are added to their buffer by the GEMM
  /// Gradients of 16 bits travel by all-to-all and are summed in fp32 where they arrive.
  bool reduce_scatter_with_fp32_accumulation = false;
  /// Gradients are summed, and divided by the tokens of the whole batch that count.
  bool calculate_per_token_loss = false;
  AttentionKernel attention = AttentionKernel::flash;
  LossKernel loss = LossKernel::fused;  // by_engine: nobody has decided; plans have another
  /// Tokens whose logits exist at once in our kernels' chunked loss; 0 = as many chunks as the
  /// vocabulary is wider than the hidden state; kOpenLossRows: nobody has decided. Plans have one
  /// of the others.
  std::int64_t loss_chunk_rows = 0;
  Kernels kernels = Kernels::by_engine;
  RmsNormKernel rms_norm = RmsNormKernel::by_engine;
  /// The model repeats grouped keys and values for every query head before PyTorch's attention.
  bool repeat_key_values = false;
  bool deterministic = false;  // bitwise repeatable kernels, with the workspaces they need
  bool attention_mask_in_batch = false;  // a batch carries its [batch, 1, seq, seq] mask
  TpOverlap tp_overlap = TpOverlap::by_engine;
  ExpertDispatch expert_dispatch = ExpertDispatch::all_to_all;
  bool expert_overlap = false;  // the exchange runs beside another micro-batch's compute
  bool grouped_gemm = true;     // one GEMM for all experts of a rank, not one each
  bool cuda_graphs = false;     // the host replays recorded kernels
  double dropout = 0.0;         // > 0: masks are kept, one byte an element
  bool frozen_base = false;     // adapters only are trained (LoRA)
  std::vector<std::string>
      recompute_operations;           // op names recomputed besides the layout's Recompute
  bool recompute_stops_early = true;  // PyTorch since 2.1: once all that backward needs is there
  // What is saved for backward, in fewer bits than it was computed in.
  SavedFormat saved_linear_inputs = SavedFormat::as_computed;
  SavedFormat saved_activation_inputs = SavedFormat::as_computed;  // of SwiGLU, GELU and the like
  SavedFormat saved_attention_outputs = SavedFormat::as_computed;
  double held_back = 0.0;            // share of HBM a plan may not use
  double expert_imbalance = 1.0;     // tokens of the busiest expert rank over the mean, >= 1
  double expert_skew = 0.0;          // popularity of the i-th expert falls as i^-skew; 0 = balanced
  std::int64_t tokens_total = 0;     // training tokens, for sizing; 0 = not stated
  double bytes_per_token_input = 4;  // read from storage

  /// Sequences of a step: as stated, or one micro-batch of each data-parallel rank.
  std::int64_t batch_for(std::int64_t dp, std::int64_t micro_batch_size) const {
    return global_batch_size > 0 ? global_batch_size : dp * micro_batch_size;
  }
  /// Micro-batches of a step on each rank, at least 1.
  std::int64_t microbatches(std::int64_t dp, std::int64_t micro_batch_size) const {
    const std::int64_t passes = batch_for(dp, micro_batch_size) / (dp * micro_batch_size);
    return passes > 1 ? passes : 1;
  }
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

}  // namespace shardwise
