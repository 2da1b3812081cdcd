#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// Meaning of a colour of the timeline.
enum class Paint : std::uint8_t {
  forward,
  backward,
  weight,
  recompute,
  optimizer,
  gather,
  reduce,
  message,
  layer,
  copy
};

/// As commands spell them.
inline constexpr std::array<std::string_view, 10> kPaintWords = {
    "forward", "backward", "weight",  "recompute", "optimizer",
    "gather",  "reduce",   "message", "layer",     "copy"};

/// Paint of an operation.
Paint paint_of(const ProgramOp& op);

}  // namespace shardwise::sim
