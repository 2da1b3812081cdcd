#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// When one operation ran, in seconds on its step's clock: begin <= ready <= met <= end.
struct RecordedSpan {
  double begin = 0;  // its stream turned to it
  double ready = 0;  // what its rank computes before it can communicate was done
  double met = 0;    // the last of those that it communicates with was ready
  double end = 0;
};

/// Seconds that an operation ran, without waiting for other ranks.
inline double ran(const RecordedSpan& span) {
  return (span.ready - span.begin) + (span.end - span.met);
}

/// Where there is no operation, and no rendezvous.
inline constexpr std::uint32_t kNoOperation = UINT32_MAX;
inline constexpr std::uint32_t kNoRendezvous = UINT32_MAX;

/// Record of one rank in one step: the simulator fills it from its virtual clock, the executor from
/// a real one.
struct RecordedStep {
  const StageProgram* program = nullptr;  // outlives the record
  std::vector<RecordedSpan> spans;        // by operation of the program
  double length = 0;                      // of the whole step, in seconds
  /// By operation, the one that the host waited for before it issued this one, kNoOperation for
  /// none; empty where the host waits for nothing. Outlives the record.
  std::span<const std::uint32_t> issued_after;
  /// By operation, the number of its rendezvous, kNoRendezvous for one that communicates with
  /// nobody. Of the ranks of one clock, operations of the same number wait for one another. Empty
  /// where other ranks are not known.
  std::vector<std::uint32_t> rendezvous;
};

}  // namespace shardwise
