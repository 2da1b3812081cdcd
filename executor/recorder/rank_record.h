#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/engine/arena.h"
#include "executor/engine/program_runner.h"
#include "planner/recorded/recorded_step.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/program/step_program.h"
#include "planner/spec/text/units.h"

namespace shardwise::exec {

/// Seconds between two moments of OpSpan.
inline Seconds seconds(std::int64_t nanoseconds) {
  return Seconds(static_cast<double>(nanoseconds) * 1e-9);
}

/// Record of one rank in one step: when each operation of its program ran, and what it needed.
struct StepRecord {
  StageProgram program;
  std::vector<MemoryItem> items;
  std::vector<OpSpan> spans;
  double seconds = 0;  // of the step: its operations, reading its batch, exchanging its loss
};

/// Use of a rank's device by all programs together. 0 on the CPU.
struct DeviceUse {
  std::int64_t at_start = 0;  // bytes, before the rank allocates any
  std::int64_t at_end = 0;    // when its steps are over
};

/// Record that is left of one rank's run.
struct RankRecord {
  int rank = 0;
  StepRecord first;
  StepRecord steady;        // the step of median length among those recorded, after the first
  double unrecorded_s = 0;  // median length of the steps that were not recorded; 0: all were
  std::int64_t arena_bytes = 0;
  std::int64_t growth_bytes = 0;  // of its process over the run, a rank of the process
  std::string clock;              // this_clock(): moments of different clocks do not compare
  DeviceUse device;
};

/// When the first operation of a step began.
std::int64_t begin_of(const StepRecord& record);

/// The step as reports and traces read it, in seconds since `zero`, a moment of OpSpan.
RecordedStep recorded(const StepRecord& record, std::int64_t zero);

/// A moment at which the memory in use changed.
struct MemoryChange {
  std::int64_t at = 0;  // as OpSpan
  std::int64_t bytes = 0;
  std::size_t item = 0;
};
/// Items of a step as they came and went, in order of time: they begin with their first operation
/// and end with their last. Residents are not among them.
std::vector<MemoryChange> memory_changes(const StepRecord& record);

/// Bytes by category: of what is there all the time, and at the fullest moment of the passes and of
/// the optimizer's operation and what follows it.
struct MeasuredMemory {
  Ledger residents;
  Ledger passes;
  Ledger optimizer;
};
MeasuredMemory measured_memory(const StepRecord& record);

}  // namespace shardwise::exec
