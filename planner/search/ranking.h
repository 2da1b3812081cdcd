#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/search/space/search_request.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// A legal layout and what it costs.
struct Candidate {
  std::int32_t engine = 0;  // index into the engines of the search
  Layout layout;
  Evaluation cost;
  std::int64_t index = 0;  // place in the enumeration: of two that cost the same, the earlier wins
};

/// True when `a` ranks before `b`.
bool ranks_before(Objective objective, const Candidate& a, const Candidate& b);

/// The best `most` candidates, no two of the same degrees. The result does not depend on the order
/// in which candidates are offered.
class BestLayouts {
 public:
  BestLayouts(Objective objective, std::size_t most) : objective_(objective), most_(most) {}

  void offer(const Candidate& candidate);
  /// A candidate with this memory and a time of this or more would not be kept.
  Seconds time_limit(Bytes memory) const;
  /// Limit of a candidate of these degrees, which no worse one of the same degrees outlives: also a
  /// long list that is not full leaves most layouts out.
  Seconds time_limit(Bytes memory, std::int32_t engine, const Layout& layout) const;
  /// Best first.
  std::span<const Candidate> entries() const { return entries_; }

 private:
  using Degrees = std::array<std::int32_t, 8>;
  struct DegreesHash {
    std::size_t operator()(const Degrees& degrees) const;
  };
  static Degrees degrees_of(std::int32_t engine, const Layout& layout);
  Seconds time_limit(Bytes memory, const Evaluation& worst) const;

  Objective objective_;
  std::size_t most_;
  std::vector<Candidate> entries_;
  std::unordered_map<Degrees, Candidate, DegreesHash> by_degrees_;  // the same
};

/// The candidates that no other beats in memory without losing time: by memory, times falling. The
/// result does not depend on the order in which candidates are offered.
class ParetoFront {
 public:
  void offer(const Candidate& candidate);
  /// A candidate with this memory and a time of this or more would not be kept, unless it is as
  /// good and earlier.
  Seconds time_limit(Bytes memory) const;
  std::span<const Candidate> entries() const { return entries_; }

 private:
  std::vector<Candidate> entries_;
};

}  // namespace shardwise
