#include "planner/spec/report/memory_numbers.h"

#include <cstddef>

namespace shardwise {

MemoryNumbers memory_numbers(const StepReport& report) {
  const auto worst = static_cast<std::size_t>(report.verdict.worst_stage);
  if (worst >= report.stages.size()) return {};
  const StageMemory& stage = report.stages[worst];
  MemoryNumbers numbers = {stage.peak_allocated(), stage.peak_reserved(), stage.peak_total(),
                           MemoryPhase::after_init};
  Bytes most;
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    const Ledger& ledger = stage.phases[p];
    const Bytes held = ledger.total() - Bytes(ledger[MemoryCategory::allocator_slack]);
    if (held <= most) continue;
    most = held;
    numbers.ends_in = static_cast<MemoryPhase>(p);
  }
  return numbers;
}

}  // namespace shardwise
