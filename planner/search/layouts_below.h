#pragma once

#include <cstddef>
#include <vector>

#include "planner/search/ranking.h"
#include "planner/search/space/search_request.h"
#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// The layouts of a space whose steps may be shorter than a given time.
struct LayoutsBelow {
  /// That fit, with the lowest bounds. `cost.step_time` is that bound: neither the step-time model
  /// nor the simulator says less. By bound, then by place in the enumeration.
  std::vector<Candidate> lowest;
  /// All others that fit take at least this: the time that was asked about, or less where there
  /// were too many to list.
  Seconds others;
};

/// Bounds every layout of the request's space; none is timed. The result is the same for any number
/// of threads.
/// \param limit  seconds of a step \param most  layouts that are listed
/// \returns the layouts, or what is wrong with a lock
Result<LayoutsBelow> layouts_below(const SearchRequest& request, Seconds limit, std::size_t most);

}  // namespace shardwise
