#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <tuple>

#include "planner/search/explore.h"
#include "planner/search/ranking.h"

namespace shardwise {

/// The fastest rows of an exploration that fit, whatever their degrees, and their front. The result
/// does not depend on the order in which rows are offered; several threads may offer them.
class BestRows {
 public:
  /// \pre `all` outlives this
  BestRows(const Exploration& all, std::size_t most) : all_(all), most_(most) {}

  /// A row that fits.
  void offer(std::uint32_t row, Seconds step_time);
  /// A row of this memory and this time or more is not kept, or as good as one that is.
  Seconds time_limit(Bytes memory) const;
  /// Ascending. What was offered besides is not among them.
  Rows rows() const;

 private:
  const Exploration& all_;
  std::size_t most_;
  mutable std::mutex mutex_;
  std::set<std::tuple<Seconds, Bytes, std::uint32_t>> best_;
  ParetoFront front_;
};

}  // namespace shardwise
