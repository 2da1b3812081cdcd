#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/job_flags.h"
#include "cli/screen_flags.h"
#include "planner/spec/diagnostic.h"
#include "simulator/planning/plan_question.h"

namespace shardwise::cli {

/// What `plan` was asked, as typed.
struct PlanFlags {
  AskedJob job;
  std::string output;
  std::string space = "usual";
  std::string rank_by = "step_time";
  std::string max_memory;
  std::string why_not;
  std::vector<std::string> locks;
  std::vector<std::string> opened;
  std::int64_t top = 0;  // 0 = not given
  int threads = 0;
  bool pareto = false;
  bool explain = false;
  ScreenFlags screen;
};

/// All problems of the command line at once.
Result<sim::PlanQuestion> read_question(const PlanFlags& flags);

using FieldValues = std::vector<std::pair<std::string, std::string>>;

/// "tp=4,pp=2" as pairs. \param flag  where a problem is said to be
Result<FieldValues> read_values(const std::string& text, const std::string& flag);

}  // namespace shardwise::cli
