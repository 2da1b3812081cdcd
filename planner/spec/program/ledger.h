#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "planner/spec/text/enum_names.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Purpose of bytes on a GPU. Spelt as in JSON by `name_of`.
enum class MemoryCategory : std::uint8_t {
  weights,         // parameters in compute dtype that persist (whole or sharded)
  main_weights,    // fp32 copy the optimizer updates (or the fp32 sharded parameters of FSDP)
  gradients,       // gradient buffer that persists over the step
  main_gradients,  // copy in the main dtype made for the optimizer
  optimizer_moments,
  gathered_weights,  // all-gather outputs, unsharded parameters, prefetched units, casts for them
  gradient_staging,  // unsharded gradients before reduction, reduce-scatter inputs and outputs
  activations,       // saved for backward, of the micro-batch being run
  activations_in_flight,  // of the other micro-batches a pipeline keeps alive
  working,                // temporaries of the operation that runs, forward or backward
  logits_and_loss,
  recompute_scratch,  // activations of the layer computed again
  optimizer_scratch,  // temporaries of the optimizer step, norms, clipping
  library_workspace,  // cuBLAS(Lt), cuDNN
  communicator,       // NCCL channels and buffers: outside the framework's allocator
  runtime_context,    // CUDA context and loaded kernels: outside the framework's allocator
  allocator_slack,    // reserved by the allocator and not allocated
};
inline constexpr std::size_t kMemoryCategories = 17;
inline constexpr std::array<std::string_view, kMemoryCategories> kMemoryCategoryNames = {
    "weights",           "main_weights",      "gradients",
    "main_gradients",    "optimizer_moments", "gathered_weights",
    "gradient_staging",  "activations",       "activations_in_flight",
    "working",           "logits_and_loss",   "recompute_scratch",
    "optimizer_scratch", "library_workspace", "communicator",
    "runtime_context",   "allocator_slack"};
template <>
inline constexpr auto kNamesOf<MemoryCategory> = kMemoryCategoryNames;

enum class MemoryPhase : std::uint8_t {
  after_init,
  first_forward_backward,  // optimizer moments may not exist yet
  first_optimizer_step,
  steady_forward_backward,
  steady_optimizer_step,
};
inline constexpr std::size_t kMemoryPhases = 5;
inline constexpr std::array<std::string_view, kMemoryPhases> kMemoryPhaseNames = {
    "after_init", "first_forward_backward", "first_optimizer_step", "steady_forward_backward",
    "steady_optimizer_step"};
template <>
inline constexpr auto kNamesOf<MemoryPhase> = kMemoryPhaseNames;

/// Bytes of one rank by category, at the moment of a phase's peak: the parts sum to the whole.
struct Ledger {
  std::array<std::int64_t, kMemoryCategories> bytes{};

  std::int64_t& operator[](MemoryCategory c) { return bytes[static_cast<std::size_t>(c)]; }
  std::int64_t operator[](MemoryCategory c) const { return bytes[static_cast<std::size_t>(c)]; }
  /// Bytes that the framework's allocator gave (torch.cuda.max_memory_allocated).
  Bytes allocated() const;
  /// allocated and the allocator's slack (torch.cuda.max_memory_reserved).
  Bytes reserved() const;
  /// Everything: reserved, context and communicators (nvidia-smi).
  Bytes total() const;
};

/// The ledgers of one rank of one pipeline stage over the phases of a step.
struct StageMemory {
  std::array<Ledger, kMemoryPhases> phases{};
  Ledger& operator[](MemoryPhase p) { return phases[static_cast<std::size_t>(p)]; }
  const Ledger& operator[](MemoryPhase p) const { return phases[static_cast<std::size_t>(p)]; }
  Bytes peak_allocated() const;
  Bytes peak_reserved() const;
  Bytes peak_total() const;
  MemoryPhase peak_phase() const;  // of total()
};

}  // namespace shardwise
