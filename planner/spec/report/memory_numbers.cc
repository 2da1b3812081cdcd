#include "planner/spec/report/memory_numbers.h"

#include <fmt/format.h>

#include <cstddef>

#include "planner/spec/text/format.h"

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

std::string memory_sum(const MemoryNumbers& numbers) {
  const std::string whole = format_bytes(numbers.allocated);
  const std::string unit = whole.substr(whole.find(' '));
  const auto amount = [&](Bytes bytes) {
    std::string text = format_bytes(bytes);
    if (text.ends_with(unit)) text.resize(text.size() - unit.size());
    return text;
  };
  return fmt::format("allocated {} + slack {} + outside {} = nvidia-smi {}", whole,
                     amount(numbers.slack()), amount(numbers.outside()),
                     amount(numbers.nvidia_smi));
}

}  // namespace shardwise
