#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/space/space.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

class SearchMemory;
struct SearchProgress;

/// Quantity that is least (tokens_per_dollar: most) in the best layout. On the same GPUs with the
/// same batch, step_time, cost and tokens_per_dollar rank alike; over several counts of GPUs they
/// do not.
enum class Objective : std::uint8_t { step_time, memory, cost, tokens_per_dollar };

/// Which layouts of a job on all GPUs of a cluster are looked at, and what is wanted of them.
struct SearchRequest {
  const ModelSpec* model = nullptr;
  const ClusterSpec* cluster = nullptr;
  const JobSpec* job = nullptr;  // global_batch_size is set
  std::vector<const EngineProfile*> engines;
  Breadth breadth = Breadth::usual;
  std::vector<std::string> opened;                         // fields with every value they have
  std::vector<std::pair<std::string, std::string>> locks;  // field, value
  /// Only layouts that our executor runs (held_to_executed()), but for fields that are locked or
  /// opened here. On CPUs, where it does, every schedule that it runs is usual.
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
  /// Results of earlier searches, to which this one adds; none = nothing. The answer is the same.
  std::shared_ptr<SearchMemory> memory;
  /// Asked to stop, a search ends within milliseconds, with the best of what it has looked at.
  std::stop_token stop;
};

}  // namespace shardwise
