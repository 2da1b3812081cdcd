#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/search/ranking.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/space/search_request.h"
#include "planner/search/space/space.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Progress of a search.
struct SearchProgress {
  std::int64_t evaluated = 0;
  std::int64_t items_done = 0;  // shares of the space, of about equal work
  std::int64_t items = 0;
  /// The best layouts that were found so far, best first: in the end those of the answer, before
  /// the rows of their loss are decided. Valid during the call.
  std::span<const Candidate> best;
};

/// Counts of the layouts of one engine, by what became of them.
struct SearchCounts {
  SpaceCounts space;
  std::int64_t does_not_fit = 0;  // what must fit does not
  std::int64_t at_risk = 0;       // its upper bound alone does not
  std::int64_t too_slow = 0;      // fits, but a bound on its time keeps it out of every answer
  std::int64_t ranked = 0;

  SearchCounts& operator+=(const SearchCounts& other);
};

struct SearchResult {
  std::vector<Candidate> best;   // that fit, best first; one for each set of degrees
  std::vector<Candidate> front;  // Pareto front of memory and step time, of those that fit
  // Where none fits:
  std::vector<Candidate> risky;       // the best of those whose upper bound alone does not
  std::optional<Candidate> smallest;  // least memory of all legal layouts
  std::vector<SearchCounts> counts;   // by engine
  std::vector<std::string> held;      // fields that no layout varied: "recompute_interval 1"
  Bytes usable;                       // memory that a layout may use
  /// The search was asked to stop: layouts may be missing, in the answer and in the counts.
  bool stopped = false;
};

/// Bytes of a GPU that the job may use.
Bytes usable_memory(const ClusterSpec& cluster, const JobSpec& job, Bytes most_memory);

/// Looks at every legal layout of the request's space: its memory on the fullest stage and its step
/// time. The result is the same for any number of threads.
/// \returns what was found, or what is wrong with a lock
Result<SearchResult> search(const SearchRequest& request);

}  // namespace shardwise
