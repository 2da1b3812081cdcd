#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// Bytes of one rank from a moment on.
struct MemoryMoment {
  double at = 0;  // seconds
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
};

/// Memory of one rank over a step, and what was alive when most was allocated.
struct MemoryCourse {
  std::vector<MemoryMoment> moments;  // ascending, one for each time at which something changed
  std::int64_t peak_allocated = 0;
  std::int64_t peak_reserved = 0;
  double peak_at = 0;
  std::vector<std::uint32_t> alive;  // buffers of the program at peak_at
  /// Buffers used wrongly: freed while not there, or allocated twice. Empty for a sound program.
  std::vector<std::uint32_t> misused;
};

/// Follows the buffers of a rank that ran `stage` at `start` to `end` (by operation): allocated
/// when an operation starts, freed when one ends; what is freed at a moment is free for what starts
/// then. An arena holds exactly the sum. The caching allocator rounds and keeps what it reserved; a
/// buffer comes from the pool of the stream whose operation allocated it.
MemoryCourse memory_over_time(const StageProgram& stage, std::span<const double> start,
                              std::span<const double> end, AllocatorKind allocator);

/// Bytes by category. Those outside the framework's allocator are 0: the clock does not have them.
using CategoryBytes = std::array<std::int64_t, kMemoryCategories>;

/// Course of memory by category in `columns` equal parts of `length` seconds: in each, what was
/// allocated at the moment of it when most was. A buffer counts as the bytes of its block, so that
/// a column sums to the clock's bytes, and the fullest to peak_allocated.
/// \pre columns > 0, length > 0; nothing ends later
std::vector<CategoryBytes> category_columns(const StageProgram& stage,
                                            std::span<const double> start,
                                            std::span<const double> end, AllocatorKind allocator,
                                            double length, std::size_t columns);

}  // namespace shardwise::sim
