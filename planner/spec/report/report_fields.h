#pragma once

#include <array>
#include <string_view>

#include "planner/spec/report/report.h"

namespace shardwise {

/// One part of a step: its key in a report, and what people read.
struct TimePart {
  std::string_view key;    // "tp_exposed", in JSON with "_s"
  std::string_view label;  // "tensor parallel, exposed"
  Seconds TimeParts::*field;
};

/// All parts, in the order of TimeParts; they add up to TimeParts::total().
inline constexpr std::array<TimePart, 15> kTimeParts = {{
    {"forward", "forward", &TimeParts::forward},
    {"backward", "backward", &TimeParts::backward},
    {"recompute", "recompute", &TimeParts::recompute},
    {"tp_exposed", "tensor parallel, exposed", &TimeParts::tp_exposed},
    {"cp_exposed", "context parallel, exposed", &TimeParts::cp_exposed},
    {"ep_exposed", "expert parallel, exposed", &TimeParts::ep_exposed},
    {"pp_exposed", "lost to pipeline messages", &TimeParts::pp_exposed},
    {"dp_exposed", "lost to data parallelism", &TimeParts::dp_exposed},
    {"bubble", "pipeline bubble", &TimeParts::bubble},
    {"optimizer", "optimizer", &TimeParts::optimizer},
    {"launch", "kernel launches", &TimeParts::launch},
    {"straggler", "waiting for the slowest GPU", &TimeParts::straggler},
    {"offload_exposed", "offload, exposed", &TimeParts::offload_exposed},
    {"input_exposed", "input, exposed", &TimeParts::input_exposed},
    {"anchored", "carried from the anchor", &TimeParts::anchored},
}};

}  // namespace shardwise
