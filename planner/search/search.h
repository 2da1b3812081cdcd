#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/enumerate.h"
#include "planner/search/ranking.h"
#include "planner/search/space.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

class SearchMemory;

/// How far a search is.
struct SearchProgress {
  std::int64_t evaluated = 0;
  std::int64_t items_done = 0;  // shares of the space, of about equal work
  std::int64_t items = 0;
  /// The best layouts that were found so far, best first: in the end those of the answer, before
  /// the rows of their loss are decided. Valid during the call.
  std::span<const Candidate> best;
};

/// Which layouts of a job on all GPUs of a cluster are looked at, and what is wanted of them.
struct SearchRequest {
  const ModelSpec* model = nullptr;
  const ClusterSpec* cluster = nullptr;
  const JobSpec* job = nullptr;  // global_batch_size is set
  std::vector<const EngineProfile*> engines;
  Breadth breadth = Breadth::usual;
  std::vector<std::string> opened;                         // fields with every value they have
  std::vector<std::pair<std::string, std::string>> locks;  // field, value
  /// Only layouts that our executor runs: each of executed_fields() has its one value, unless it is
  /// locked or opened here.
  bool executed = false;
  Objective objective = Objective::step_time;
  std::size_t top = 10;
  bool front = true;             // false: no Pareto front, so fewer layouts are timed
  Bytes most_memory = Bytes(0);  // a layout may use no more; 0 = what the GPU has
  int threads = 0;               // 0 = as many as the machine has cores
  /// Beyond the usual space, the answer of the usual space is found first: layouts that it shows to
  /// be too slow are counted as such and not timed (time_floor). False leaves that out; what the
  /// search has found so far still spares layouts their time. The answer is the same.
  bool bounded = true;
  /// False: layouts that a bound keeps out of the answer are in no count but that of the space, and
  /// not even their memory is found; no progress is told. The answer is the same. \pre true where
  /// there is a front, memory ranks, or the space is not the usual one of one engine
  bool counted = true;
  std::function<void(const SearchProgress&)> progress;  // called from one thread, often
  /// What earlier searches have made and this one adds to; none = nothing. The answer is the same.
  std::shared_ptr<SearchMemory> memory;
  /// Asked to stop, a search ends within milliseconds, with the best of what it has looked at.
  std::stop_token stop;
};

/// What became of every layout of one engine.
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
