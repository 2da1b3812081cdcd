#pragma once

#include <compare>
#include <cstdint>

#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Purpose of a group whose calls belong to no stream of a program.
enum class Control : std::int32_t {
  results,        // of a step: losses, counts, lengths
  hosts,          // on which machine each rank is
  checkpoints,    // whose files are whole
  preparation,    // what processes find before they run
  records,        // of a measured step
  watch,          // whether the other processes still run
  machine,        // calibration: what the ranks run on
  runs,           // calibration: all begin at once
  communicators,  // how those of NCCL find one another
};

/// Keeps groups of the same ranks apart: calls on different channels do not meet, whichever comes
/// first. Each stream of a program has one, and each kind of control.
class Channel {
 public:
  constexpr Channel(Stream stream) : number_(static_cast<std::int32_t>(stream)) {}
  constexpr Channel(Control control)
      : number_(kFirstControl + static_cast<std::int32_t>(control)) {}

  /// Number that all ranks share; less than 2^15, which MPI allows a tag.
  constexpr std::int32_t number() const { return number_; }
  friend constexpr auto operator<=>(const Channel&, const Channel&) = default;

 private:
  static constexpr std::int32_t kFirstControl = 100;
  static_assert(kFirstControl >= static_cast<std::int32_t>(kStreams));

  std::int32_t number_;
};

}  // namespace shardwise::exec
