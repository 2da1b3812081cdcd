#include "simulator/traces/work_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace shardwise::sim {
namespace {

constexpr std::array<std::string_view, kWorkKinds> kKindNames = {
    "GEMM",         "attention",        "memory-bound", "layer",
    "all-gather",   "reduce-scatter",   "all-reduce",   "all-to-all",
    "send/receive", "other collective", "copy"};
constexpr std::array<std::string_view, kStepPhases> kPhaseNames = {"forward", "backward",
                                                                   "optimizer", "unknown"};

template <std::size_t kCount>
bool has_any(std::string_view text, const std::array<std::string_view, kCount>& words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// FlashAttention 2 and 3, PyTorch's memory-efficient attention, cuDNN's and Transformer Engine's,
// Triton's flex attention; AOTriton's, which PyTorch runs on AMD GPUs.
constexpr std::array<std::string_view, 12> kAttention = {
    "flash",           "fmha",     "sdpa",     "flex_attention",   "attention",
    "_attn_",          "attn_fwd", "attn_bwd", "bwd_kernel_dk_dv", "bwd_kernel_dq",
    "bwd_kernel_fuse", "mha_"};
// The first and the last kernel of AOTriton's backward pass; others have the word in their names.
constexpr std::array<std::string_view, 3> kAttentionBegins = {"bwd_preprocess", "_bwd_preprocess",
                                                              "bwd_postprocess"};
// cuBLAS (also nvjet, xmma, split-k reductions), CUTLASS, DeepGEMM, grouped products, Tensile (of
// rocBLAS).
constexpr std::array<std::string_view, 9> kProducts = {
    "gemm", "gemv", "cutlass", "nvjet", "xmma", "cublas", "splitkreduce", "matmul", "cijk_"};
// NCCL and RCCL, MSCCL, NVSHMEM, DeepEP, Transformer Engine's userbuffers.
constexpr std::array<std::string_view, 6> kCommunication = {"nccl",    "rccl",    "msccl",
                                                            "nvshmem", "deep_ep", "userbuffers"};
// Kernels of ranks that write each other's memory: PyTorch's symmetric memory ("multimem_", "one_"
// and "two_shot_all_reduce_kernel", its barriers), vLLM's and AITER's "cross_device_reduce".
constexpr std::array<std::string_view, 12> kShared = {
    "all_reduce",     "allreduce",           "all_gather",     "allgather",
    "reduce_scatter", "reducescatter",       "all_to_all",     "alltoall",
    "multimem_",      "cross_device_reduce", "barrier_kernel", "signal_kernel"};

WorkKind kind_of_cost(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return WorkKind::all_gather;
    case CollectiveKind::reduce_scatter:
      return WorkKind::reduce_scatter;
    case CollectiveKind::all_reduce:
      return WorkKind::all_reduce;
    case CollectiveKind::all_to_all:
      return WorkKind::all_to_all;
    case CollectiveKind::send_recv:
      return WorkKind::send_recv;
    default:
      return WorkKind::other_collective;
  }
}

}  // namespace

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

std::string_view name_of(WorkKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
std::string_view name_of(StepPhase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

WorkKind kind_of_collective(std::string_view name) {
  std::string text = lower(name);
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  const auto has = [&text](std::string_view word) { return text.find(word) != std::string::npos; };
  if (has("allgather")) return WorkKind::all_gather;
  if (has("reducescatter")) return WorkKind::reduce_scatter;
  if (has("allreduce") || has("crossdevicereduce")) return WorkKind::all_reduce;
  if (has("alltoall") || has("dispatch") || has("combine")) return WorkKind::all_to_all;
  if (has("send") || has("recv")) return WorkKind::send_recv;
  return WorkKind::other_collective;
}

WorkKind kind_of_kernel(std::string_view name) {
  const std::string text = lower(name);
  if (has_any(text, kCommunication)) return kind_of_collective(text);
  // Inductor names a fused kernel after every operation it took in; templates alone hold products.
  const bool fused = text.starts_with("triton_") && !text.starts_with("triton_tem_");
  if (fused) return WorkKind::memory_bound;
  const bool product = has_any(text, kProducts);  // may sum with other ranks as it writes
  if (!product && has_any(text, kShared)) return kind_of_collective(text);
  const bool begins = std::ranges::any_of(
      kAttentionBegins, [&](std::string_view word) { return text.starts_with(word); });
  if (begins || has_any(text, kAttention)) return WorkKind::attention;
  if (text.starts_with("triton_tem_") || product) return WorkKind::gemm;
  return WorkKind::memory_bound;
}

WorkKind kind_of_copy(std::string_view name) {
  const bool inside =
      name.find("DtoD") != std::string_view::npos || name.find("Memset") != std::string_view::npos;
  return inside ? WorkKind::memory_bound : WorkKind::copy;
}

WorkKind kind_of(const StageProgram& stage, const ProgramOp& op) {
  const OpCost& cost = stage.costs[static_cast<std::size_t>(op.cost)];
  if (!cost.layers.empty()) return WorkKind::layer;
  if (!cost.collectives.empty()) return kind_of_cost(cost.collectives.front().kind);
  if (cost.kernels.empty()) return WorkKind::copy;
  switch (cost.kernels.front().kind) {
    case KernelKind::gemm:
      return WorkKind::gemm;
    case KernelKind::attention:
      return WorkKind::attention;
    case KernelKind::memory_bound:
      break;
  }
  return WorkKind::memory_bound;
}

StepPhase phase_of(const ProgramOp& op) {
  switch (op.role) {
    case OpRole::forward:
    case OpRole::send_forward:
    case OpRole::receive_forward:
    case OpRole::offload:
    case OpRole::gather_outer:
    case OpRole::gather_updated:  // a steady step has it in its forward pass
      return StepPhase::forward;
    case OpRole::gather:
    case OpRole::copy_out:
    case OpRole::reshard:
    case OpRole::cast:
      return op.pass == Pass::backward ? StepPhase::backward : StepPhase::forward;
    case OpRole::finalize:
    case OpRole::gradient_norm:
    case OpRole::optimizer:
      return StepPhase::optimizer;
    default:
      return StepPhase::backward;
  }
}

}  // namespace shardwise::sim
