#pragma once

#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Effect of one field, or several that are legal together only, on plan A when it is as in B.
struct PricedDifference {
  struct Field {
    std::string key;  // "tp", "precision", "engine"
    std::string first;
    std::string second;
  };
  std::vector<Field> fields;
  bool legal = false;  // A with these values alone
  Seconds time;        // of a step, more than A; zero where it is not legal
  Bytes memory;        // of the fullest GPU, as nvidia-smi shows it, more than A
};

struct PlanDifferences {
  std::vector<PricedDifference> rows;  // most time first
  Seconds first_step;
  Seconds second_step;
  Bytes first_memory;
  Bytes second_memory;
  /// Rest of the difference of both plans beside the legal rows: fields act on one another.
  Seconds time_left;
  Bytes memory_left;
};

/// Fields of model, cluster, engine, job and layout in which two plans differ, each priced alone by
/// the estimate of A with B's value. Fields that A may not take alone, as degrees that must
/// multiply to the GPUs, are one row. \pre check_plan() has nothing to say of either
PlanDifferences plan_differences(const Plan& a, const Plan& b);

}  // namespace shardwise
