#pragma once

#include <array>
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
};

/// Of a predicted or measured report with stages; else zeros.
MemoryNumbers memory_numbers(const StepReport& report);

/// What sentences call a phase.
inline constexpr std::array<std::string_view, kMemoryPhases> kMemoryPhaseWords = {
    "what is there before the first step", "the first forward and backward",
    "the first optimizer step", "forward and backward", "the optimizer step"};
constexpr std::string_view words_of(MemoryPhase phase) {
  return kMemoryPhaseWords[static_cast<std::size_t>(phase)];
}
/// The same, where there is little room: "a pass".
inline constexpr std::array<std::string_view, kMemoryPhases> kMemoryPhaseBriefly = {
    "the start", "the first pass", "the first step", "a pass", "a step"};
constexpr std::string_view brief_words_of(MemoryPhase phase) {
  return kMemoryPhaseBriefly[static_cast<std::size_t>(phase)];
}

}  // namespace shardwise
