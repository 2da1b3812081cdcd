#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/job_flags.h"
#include "cli/screen_flags.h"
#include "planner/search/search.h"
#include "planner/spec/diagnostic.h"

namespace shardwise::cli {

/// What `plan` was asked, as typed.
struct PlanFlags {
  JobFlags job;
  std::string output;
  std::string space = "usual";
  std::string rank_by = "step_time";
  std::string max_memory;
  std::string why_not;
  std::vector<std::string> locks;
  std::vector<std::string> opened;
  std::int64_t top = 10;
  int threads = 0;
  bool pareto = false;
  bool explain = false;
  ScreenFlags screen;
};

/// The same with everything loaded: one cluster for each count of GPUs.
struct PlanQuestion {
  ModelSpec model;
  JobSpec job;
  std::vector<ClusterSpec> clusters;
  std::vector<const EngineProfile*> engines;
  Breadth breadth = Breadth::usual;
  Objective objective = Objective::step_time;
  Bytes max_memory;
  std::vector<std::pair<std::string, std::string>> locks;
  std::vector<std::pair<std::string, std::string>> why_not;
  std::vector<Assumption> assumptions;

  /// \pre this and `flags` outlive the request
  SearchRequest request(const PlanFlags& flags, std::size_t cluster) const;
};

/// All problems of the command line at once.
Result<PlanQuestion> read_question(const PlanFlags& flags);

/// "tp=4,pp=2" as pairs. \param flag  where a problem is said to be
Result<std::vector<std::pair<std::string, std::string>>> read_values(const std::string& text,
                                                                     const std::string& flag);

}  // namespace shardwise::cli
