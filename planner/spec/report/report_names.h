#pragma once

#include <array>
#include <string_view>

#include "planner/spec/program/ledger.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/enum_names.h"

namespace shardwise {

template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<GemmBasis> = {"measured", "interpolated",
                                                                        "extrapolated"};
template <>
inline constexpr auto kNamesOf<MemoryCategory> = kMemoryCategoryNames;
template <>
inline constexpr auto kNamesOf<MemoryPhase> = kMemoryPhaseNames;
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<Fit> = {"fits", "at_risk",
                                                                  "does_not_fit"};

}  // namespace shardwise
