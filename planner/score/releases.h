#pragma once

#include <string>
#include <vector>

#include "planner/score/score.h"

namespace shardwise {

/// Figures that `score` printed at a commit, over the public measurements of the day.
struct ReleaseScore {
  std::string date;
  std::string commit;
  OverallScore memory;
  OverallScore time;
};

/// Oldest first. Source: configs/accuracy.json, from docs/score.md at each commit.
const std::vector<ReleaseScore>& release_scores();

/// Text of configs/accuracy.json, built in.
std::string_view accuracy_config();

}  // namespace shardwise
