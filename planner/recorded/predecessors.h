#pragma once

#include <cstdint>
#include <vector>

#include "planner/recorded/recorded_step.h"

namespace shardwise {

/// What the operations of a recorded step followed on their rank.
class Predecessors {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// \param step  outlives this
  explicit Predecessors(const RecordedStep& step);

  /// Of the operation before on its stream and those that `op` waits for, the one that ended last;
  /// kNone for one that follows nothing.
  std::uint32_t latest_before(std::uint32_t op) const;
  /// Of two operations the one that ended later; kNone ends before all.
  std::uint32_t later(std::uint32_t a, std::uint32_t b) const;
  /// The operation that ended last; kNone where there is none.
  std::uint32_t last() const;

 private:
  const RecordedStep& step_;
  std::vector<std::uint32_t> before_;  // on the same stream
};

/// The critical path of one rank: the chain of operations, each begun when the one before it ended,
/// that ends the step; the seconds that its operations ran, without waiting for other ranks.
Seconds critical_path(const RecordedStep& step);

}  // namespace shardwise
