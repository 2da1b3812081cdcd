#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "executor/kernels/norm.h"

namespace shardwise::exec {

/// Calls f(row, segment) for all, a task for some rows.
template <class F>
void for_segments(const NormShape& s, Workers& workers, F f) {
  constexpr std::int64_t kNormRowsATask = 32;
  workers.run((s.rows + kNormRowsATask - 1) / kNormRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(s.rows, (task + 1) * kNormRowsATask);
    for (std::int64_t row = task * kNormRowsATask; row < end; ++row) {
      for (std::int64_t segment = 0; segment < s.segments; ++segment) f(row, segment);
    }
  });
}

inline constexpr std::int64_t kNormColumns = 64;

/// Sums over rows and segments, a task for some columns: accumulate(row, segment, first, count,
/// sums) adds one row's terms, finish(first, count, sums) stores them.
/// \tparam kSums  sums a column
template <std::int64_t kSums, class Accumulate, class Finish>
void sum_columns(const NormShape& s, Workers& workers, Accumulate accumulate, Finish finish) {
  workers.run((s.width + kNormColumns - 1) / kNormColumns, [&](std::int64_t task) {
    const std::int64_t first = task * kNormColumns;
    const std::int64_t count = std::min(kNormColumns, s.width - first);
    float sums[static_cast<std::size_t>(kSums * kNormColumns)] = {};
    for (std::int64_t row = 0; row < s.rows; ++row) {
      for (std::int64_t segment = 0; segment < s.segments; ++segment) {
        accumulate(row, segment, first, count, sums);
      }
    }
    finish(first, count, sums);
  });
}

}  // namespace shardwise::exec
