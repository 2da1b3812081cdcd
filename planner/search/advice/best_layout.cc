#include "planner/search/advice/best_layout.h"

#include "planner/estimate/estimate.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/search/advice/relief.h"
#include "planner/search/pricing/search_memory.h"

namespace shardwise {
namespace {

/// What no layout could change.
Diagnostics problems_of(const BestQuestion& q) {
  Diagnostics problems = check_precision(*q.cluster, *q.job);
  const Diagnostics operations = check_operations(*q.model, *q.job);
  problems.insert(problems.end(), operations.begin(), operations.end());
  return problems;
}

}  // namespace

BestLayout best_layout(const BestQuestion& q) {
  BestLayout best;
  best.usable = usable_memory(*q.cluster, *q.job, Bytes(0));
  const Diagnostics problems = problems_of(q);
  if (!problems.empty()) {
    best.refused = problems.front().message;
    return best;
  }
  SearchRequest request;
  request.model = q.model;
  request.cluster = q.cluster;
  request.job = q.job;
  request.engines = {q.engine};
  request.executed = q.executed;
  request.top = 1;
  request.front = false;
  request.counted = false;
  request.memory = q.memory;
  request.stop = q.stop;
  const Result<SearchResult> found = search(request);
  if (!found) {
    best.refused = found.problems().front().message;
    return best;
  }
  best.stopped = found->stopped;
  if (best.stopped) return best;
  if (found->counts.front().space.legal == 0) {
    const Diagnostics why = why_none_is_legal(request);
    best.refused = why.empty() ? "no legal layout in the usual space" : why.front().message;
    return best;
  }
  if (found->best.empty() && found->risky.empty()) {
    best.smallest = found->smallest;
    return best;
  }
  if (q.memory && !found->best.empty()) q.memory->keep_best(found->best.front().layout);
  const Layout& layout = (found->best.empty() ? found->risky : found->best).front().layout;
  best.report =
      estimate(*q.model, *q.cluster,
               decided_job(*q.model, *q.cluster, *q.job, *q.engine, layout, found->usable),
               *q.engine, layout);
  return best;
}

}  // namespace shardwise
