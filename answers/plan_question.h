#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise::sim {

/// By value, as in flags and JSON.
inline constexpr std::array<std::string_view, 2> kBreadthNames = {"usual", "full"};
inline constexpr std::array<std::string_view, 4> kObjectiveNames = {"step_time", "memory", "cost",
                                                                    "tokens_per_dollar"};

/// What `plan` is asked, with everything loaded: one cluster for each count of GPUs.
struct PlanQuestion {
  ModelSpec model;
  JobSpec job;  // global_batch_size is set
  std::vector<ClusterSpec> clusters;
  std::vector<const EngineProfile*> engines;
  /// Nobody named an engine: the fastest of `engines` is taken, and its layouts alone are listed.
  bool takes_engine = false;
  Breadth breadth = Breadth::usual;
  Objective objective = Objective::step_time;
  Bytes max_memory;
  std::vector<std::pair<std::string, std::string>> locks;
  std::vector<std::string> opened;
  bool executed = false;  // only layouts that our executor runs
  std::size_t top = 10;
  bool front = true;     // with the Pareto front of memory and step time
  bool simulate = true;  // the best are ranked by their simulated steps
  int threads = 0;       // 0 = as many as the machine has cores
  std::vector<Assumption> assumptions;
  /// The simulated step of a plan, where it is known already; may be empty.
  std::function<std::optional<Seconds>(const Plan&)> known_step;

  /// The search of all engines, or of one, on one of the clusters. \pre this outlives the request
  SearchRequest request(std::size_t cluster) const;
  SearchRequest request(std::size_t cluster, std::size_t engine) const;
};

}  // namespace shardwise::sim
