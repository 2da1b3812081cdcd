#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers/plan_question.h"
#include "planner/question/subject.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::sim {

/// Question to `plan`, as a user gave it.
struct AskedPlan {
  AskedJob job;  // several engines or "all", several counts of GPUs with a comma between
  std::string space = "usual";
  std::string rank_by = "step_time";
  std::string max_memory;           // with its unit, or in GiB; empty: all of it
  std::string why_not;              // "tp=4,pp=2": checked with the rest; empty for none
  std::vector<std::string> locks;   // "tp=8" each
  std::vector<std::string> opened;  // fields
  std::int64_t top = 0;             // 0 = the usual number
  int threads = 0;                  // 0 = as many as the machine has cores
  bool front = false;               // with the Pareto front of memory and step time
};

/// The question with everything loaded, or all its problems at once. They name flags of the command
/// line (planner/question/flags.h).
Result<PlanQuestion> read_question(const AskedPlan& asked);

/// Problems of an answer: where only layouts of our executor are searched, the last one says which
/// flag searches more.
Diagnostics with_executed_hint(const PlanQuestion& question, Diagnostics problems);

}  // namespace shardwise::sim
