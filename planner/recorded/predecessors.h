#pragma once

#include <cstdint>
#include <vector>

#include "planner/recorded/recorded_step.h"

namespace shardwise {

/// Operations that those of a recorded step followed on their rank.
class Predecessors {
 public:
  /// \param step  outlives this
  explicit Predecessors(const RecordedStep& step);

  /// The operation before on its stream, those that `op` waits for and the one that the host waited
  /// for before it issued `op`; each once.
  std::vector<std::uint32_t> all_before(std::uint32_t op) const;
  /// The one of them that ended last; kNoOperation for one that follows nothing.
  std::uint32_t latest_before(std::uint32_t op) const;
  /// The operation that ended last; kNoOperation where there is none.
  std::uint32_t last() const;

 private:
  /// Later of two operations, by their ends; kNoOperation ends before all.
  std::uint32_t later(std::uint32_t a, std::uint32_t b) const;

  const RecordedStep& step_;
  std::vector<std::uint32_t> before_;  // on the same stream
};

}  // namespace shardwise
