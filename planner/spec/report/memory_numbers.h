#pragma once

#include <array>
#include <string>
#include <string_view>

#include "planner/spec/report/report.h"

namespace shardwise {

/// A GPU's memory as people meet it, of the fullest stage.
struct MemoryNumbers {
  Bytes allocated;   // torch.cuda.max_memory_allocated
  Bytes reserved;    // torch.cuda.max_memory_reserved
  Bytes nvidia_smi;  // with context and communicators
  /// The first phase in which most of the memory is needed that a run ends without.
  MemoryPhase ends_in = MemoryPhase::after_init;

  Bytes slack() const { return reserved - allocated; }     // of the framework's allocator
  Bytes outside() const { return nvidia_smi - reserved; }  // of it: context and communicators
};

/// Numbers of a predicted or measured report with stages; else zeros.
MemoryNumbers memory_numbers(const StepReport& report);

/// The one line of memory of every screen, picture and page: "allocated 62.4 GiB + slack 3.98 +
/// outside 2.36 = nvidia-smi 68.8". One unit is enough where all have it.
std::string memory_sum(const MemoryNumbers& numbers);

/// Names of phases in sentences.
inline constexpr std::array<std::string_view, kMemoryPhases> kMemoryPhaseWords = {
    "what is there before the first step", "the first forward and backward",
    "the first optimizer step", "forward and backward", "the optimizer step"};
constexpr std::string_view words_of(MemoryPhase phase) {
  return kMemoryPhaseWords[static_cast<std::size_t>(phase)];
}

}  // namespace shardwise
