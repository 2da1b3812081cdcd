#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "planner/spec/program/step_program.h"
#include "simulator/comparison/compare.h"
#include "simulator/traces/work_kind.h"

namespace shardwise::sim {

/// Compared operations of one kind and phase, of all stages.
struct KindSum {
  bool known = true;  // false: the program has no operation of these names
  WorkKind kind = WorkKind::memory_bound;
  StepPhase phase = StepPhase::unknown;
  Seconds first;
  Seconds second;
  bool in_first = false;
  bool in_second = false;
  std::vector<std::size_t> operations;  // of the list, most contributing first
  Seconds difference() const { return second - first; }
};

/// Joins operations by the kinds that their names have in the program. The sums of all kinds are
/// those of the list. Most contributing first, whatever the sign.
/// \param operations  as compare() sorts them
std::vector<KindSum> kind_sums(std::span<const ComparedTime> operations,
                               const StepProgram& program);

}  // namespace shardwise::sim
