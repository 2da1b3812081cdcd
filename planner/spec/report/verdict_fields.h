#pragma once

#include "planner/spec/json/fields.h"
#include "planner/spec/program/step_program.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/report/quantity_fields.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Absent where nothing is offloaded.
template <class Io, class V>
void list_host(Io& io, V& verdict) {
  if (!Io::kReads && verdict.host == Bytes(0)) return;
  bytes(io, "host_bytes", verdict.host);
  bytes(io, "host_usable_bytes", verdict.host_usable);
  bytes(io, "host_lacks_bytes", verdict.host_lacks);
}

/// \param numbers  of the report
template <class Io, class V>
void list_verdict(Io& io, V& verdict, const MemoryNumbers& numbers) {
  io.choice("fit", verdict.fit);
  io.integer("worst_stage", verdict.worst_stage, 0, kMaxRanks);
  io.choice("worst_phase", verdict.worst_phase);
  derived(io, "allocated_bytes", numbers.allocated);
  derived(io, "reserved_bytes", numbers.reserved);
  derived(io, "nvidia_smi_bytes", numbers.nvidia_smi);
  MemoryPhase ends_in = numbers.ends_in;
  io.choice("ends_in", ends_in);
  bytes(io, "needed_bytes", verdict.needed);
  bytes(io, "point_bytes", verdict.point);
  bytes(io, "upper_bytes", verdict.upper);
  bytes(io, "usable_bytes", verdict.usable);
  list_host(io, verdict);
  io.text("cheapest_fix", verdict.cheapest_fix);
}

}  // namespace shardwise
