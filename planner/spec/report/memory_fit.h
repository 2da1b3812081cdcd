#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "planner/spec/text/enum_names.h"
#include "planner/spec/text/units.h"

namespace shardwise {

enum class Fit : std::uint8_t {
  fits,     // the upper bound fits
  at_risk,  // what must fit does, the upper bound does not
  does_not_fit,
};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<Fit> = {"fits", "at_risk",
                                                                  "does_not_fit"};

/// Peaks of the memory of a layout's GPUs, each of the stage where it is highest.
struct MemoryPeaks {
  /// Bytes that a run ends without: allocated, context, communicators and what fragmentation keeps
  /// from being freed. PyTorch frees cached blocks before it says that memory is out, so that the
  /// rest of its slack is taken where there is room for it. Source:
  /// pytorch@v2.15.0:c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks.
  Bytes needed;
  Bytes point;  // as nvidia-smi would show it, slack included
  Bytes upper;  // upper bound of it
  /// Memory of a node's host that what is kept there lacks; 0 where it has room, or is not known.
  Bytes host_lacks;

  /// Joins the peaks of another stage.
  constexpr void join(const MemoryPeaks& more) {
    needed = std::max(needed, more.needed);
    point = std::max(point, more.point);
    upper = std::max(upper, more.upper);
    host_lacks = std::max(host_lacks, more.host_lacks);
  }
};

/// Verdict on a layout's memory in what it may use of a GPU: the one rule of every verdict. Slack
/// alone turns `fits` into `at_risk`, never into `does_not_fit`.
constexpr Fit fit_of(const MemoryPeaks& peaks, Bytes usable) {
  if (peaks.needed > usable || peaks.host_lacks > Bytes(0)) return Fit::does_not_fit;
  return peaks.upper <= usable ? Fit::fits : Fit::at_risk;
}

}  // namespace shardwise
