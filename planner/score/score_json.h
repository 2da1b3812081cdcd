#pragma once

#include <string>

#include "planner/score/score.h"

namespace shardwise {

/// The report as JSON, schema "shardwise.score/1": docs/score.md has its keys.
std::string to_json(const ScoreReport& report);

}  // namespace shardwise
