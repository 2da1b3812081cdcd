#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// The axis by which reports file what a stream moves.
enum class TrafficAxis : std::uint8_t { none, dp, tp, cp, ep, pp, offload };
inline constexpr std::array<std::string_view, 7> kTrafficAxes = {"none", "dp", "tp",     "cp",
                                                                 "ep",   "pp", "offload"};
constexpr std::string_view name_of(TrafficAxis axis) {
  return kTrafficAxes[static_cast<std::size_t>(axis)];
}

/// `none` for a stream that communicates nothing.
constexpr TrafficAxis axis_of(Stream stream) {
  switch (stream) {
    case Stream::copy:
    case Stream::all_gather:
    case Stream::reduce_scatter:
    case Stream::outer_reduce:
      return TrafficAxis::dp;
    case Stream::tensor_parallel:
      return TrafficAxis::tp;
    case Stream::context_parallel:
      return TrafficAxis::cp;
    case Stream::expert_parallel:
      return TrafficAxis::ep;
    case Stream::send:
    case Stream::receive:
      return TrafficAxis::pp;
    case Stream::host_copy:
      return TrafficAxis::offload;
    case Stream::compute:
      break;
  }
  return TrafficAxis::none;
}

}  // namespace shardwise
