#pragma once

#include <array>
#include <string_view>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/text/enum_names.h"

namespace shardwise {

template <>
inline constexpr std::array<std::string_view, 11> kNamesOf<MoveKind> = {
    "copy",      "layer_norm", "rms_norm",  "gelu",          "swiglu", "rope",
    "embedding", "loss",       "optimizer", "gradient_norm", "cast"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<InNetwork> = {"none", "nvls", "sharp"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<Wiring> = {"switched", "mesh"};

}  // namespace shardwise
