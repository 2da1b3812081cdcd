#pragma once

#include <string>

#include "planner/export/import_plan.h"

namespace shardwise::test {

/// A line for each.
inline std::string assumptions_of(const Import& made) {
  std::string text;
  for (const Assumption& each : made.assumptions) text += each.text + "\n";
  return text;
}

}  // namespace shardwise::test
