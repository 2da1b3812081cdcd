#pragma once

#include <cstdint>
#include <optional>

#include "planner/question/subject.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// A recompute that fits, and what it costs.
struct RecomputeChoice {
  Layout layout;
  Bytes point;  // as nvidia-smi shows it
  Seconds step_time;
};

/// Reach of a layout on its GPUs: the most of one thing at a time with which it still fits
/// (Fit::fits), all else as it is.
struct FitsLimits {
  std::int64_t longest_sequence = 0;     // tokens, a multiple of 256; 0 where none fits
  std::int64_t largest_micro_batch = 0;  // sequences; 0 where none fits
  /// The least recompute that fits: none, then full of ever more blocks. Empty where none does.
  std::optional<RecomputeChoice> least_recompute;
};

/// \param usable  memory of a GPU that the layout may use
/// \pre check_layout has no diagnostics
FitsLimits fits_limits(const Subject& subject, const Layout& layout, Bytes usable);

}  // namespace shardwise
