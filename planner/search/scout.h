#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/pricing/evaluator.h"
#include "planner/search/ranking.h"
#include "planner/search/search.h"
#include "planner/search/work_list.h"

namespace shardwise {

/// A layout that fits, not timed yet.
struct PricedLayout {
  std::int64_t index = 0;  // in its task
  Bytes point;
  Seconds least;           // its step takes no less
  std::uint32_t like = 0;  // PricedTask::degrees
};

/// Every layout of a task: what became of it, and those whose times may matter.
struct PricedTask {
  SearchCounts counts;
  std::vector<PricedLayout> fitting;  // in the order of the enumeration
  std::vector<Layout> degrees;        // a layout of each set of degrees, or more
  Seconds least = Seconds(1e300);     // of `fitting`
};

/// Every layout of a search, and the exact costs of those that lead by their bounds.
struct Scouted {
  std::vector<PricedTask> tasks;  // by number of the task; empty where the lists are too long
  std::vector<Candidate> leading;
};

/// The evaluator of an engine that a thread has.
using EvaluatorOf = std::function<Evaluator&(int thread, std::int32_t engine)>;

/// Prices memory and bounds the time of every layout. Then times the layouts that lead by their
/// bounds: of `request.top` sets of degrees, and of the front. A search that knows them times few
/// others.
/// \pre work.place()
Scouted scouted(const SearchRequest& request, const WorkList& work, Bytes usable,
                const EvaluatorOf& evaluator);

}  // namespace shardwise
