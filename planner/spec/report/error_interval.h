#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "planner/spec/text/units.h"

namespace shardwise {

/// Share of measurements that an interval covers.
inline constexpr double kIntervalLevel = 0.9;

/// Where measurements of a predicted quantity lie: between `low` and `high` times the prediction.
struct ErrorInterval {
  double low = 0;
  double high = 0;           // 0 = not known
  std::int64_t rows = 0;     // measured, that it was calibrated on
  std::int64_t sources = 0;  // of these
  std::string family;        // of the rows' engines ("pytorch"); empty = of all
  std::string architecture;  // of their GPUs; empty = of all

  bool known() const { return high > 0; }
};

/// An end of an interval of an amount of memory.
inline Bytes times(Bytes amount, double factor) {
  return Bytes(std::llround(static_cast<double>(amount.value()) * factor));
}

/// Those of a predicted report; docs/score.md has the method.
struct ReportIntervals {
  ErrorInterval step;
  ErrorInterval allocated;   // torch.cuda.max_memory_allocated
  ErrorInterval reserved;    // torch.cuda.max_memory_reserved
  ErrorInterval nvidia_smi;  // with context and communicators; of the same rows

  bool any() const {
    return step.known() || allocated.known() || reserved.known() || nvidia_smi.known();
  }
};

}  // namespace shardwise
