#pragma once

#include <optional>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Which bytes a source counted.
enum class MemoryKind : std::uint8_t {
  allocated,              // torch.cuda.max_memory_allocated
  reserved,               // torch.cuda.max_memory_reserved
  total,                  // nvidia-smi
  states_and_activations  // the sum of a paper's formulas: no temporaries, no libraries
};

/// Whose bytes they are.
enum class MemoryRank : std::uint8_t { fullest, first_stage, last_stage };

struct MeasuredMemory {
  MemoryKind kind = MemoryKind::total;
  MemoryRank rank = MemoryRank::fullest;
};

/// Meaning of the wording of `memory_kind`.
MeasuredMemory measured_memory(const Row& row, Notes& notes);

/// Bytes of a prediction that were measured, in GiB.
double predicted_memory_gib(const StepReport& report, const MeasuredMemory& measured);

/// Allocated bytes between steps, in GiB: states that persist, of the stage `rank` means.
double predicted_after_step_gib(const StepReport& report, MemoryRank rank);

/// Seconds of the measured step, from the step time, tokens/s of a GPU or samples/s of the job; in
/// this order. Nothing when the row has none or is not representative; then a reason is noted.
std::optional<double> measured_step_time_s(const Row& row, const Layout& layout, Notes& notes);

}  // namespace shardwise
