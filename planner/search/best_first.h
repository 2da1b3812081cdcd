#pragma once

#include <memory>
#include <vector>

#include "planner/search/finder.h"
#include "planner/search/scout.h"
#include "planner/search/search.h"
#include "planner/search/work_list.h"

namespace shardwise {

/// Looks only at layouts that may be in the answer of a search that is not counted
/// (SearchRequest::counted). A layout is bounded before its memory is found, and the fullest moment
/// of a micro-batch is found only for one that may fit. Those that may be among the best are timed
/// once all are known, by their bounds.
///
/// \returns what each thread has found; counts are of the space alone
/// \pre work.place()
std::vector<std::unique_ptr<Finder>> found_best_first(const SearchRequest& request,
                                                      const WorkList& work, Bytes usable,
                                                      const EvaluatorOf& evaluator);

}  // namespace shardwise
