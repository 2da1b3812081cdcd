#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

struct SearchRequest;

/// Which layouts of a space fit, as far as searches have found it. A faster link moves the same
/// bytes: clusters that differ in bandwidths alone have the same layouts in the same order, and the
/// same of them fit.
class KnownFits {
 public:
  enum class Fits : std::uint8_t { unknown, yes, no };

  /// Nothing is known yet. \pre of one engine, the usual space, not counted
  explicit KnownFits(const SearchRequest& request);
  bool is_of(const SearchRequest& request) const;

  /// Fits of a task's layouts, in the order of the enumeration. Tasks are one thread's each.
  std::vector<Fits>& of_task(std::size_t task, std::size_t layouts);
  /// \pre before threads ask for tasks
  void resize(std::size_t tasks) { tasks_.resize(tasks); }

 private:
  ModelSpec model_;
  ClusterSpec cluster_;  // without bandwidths
  JobSpec job_;
  EngineProfile engine_;
  Bytes most_memory_;
  bool executed_;
  std::vector<std::vector<Fits>> tasks_;
};

}  // namespace shardwise
