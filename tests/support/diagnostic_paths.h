#pragma once

#include <string>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::test {

/// Paths of the problems, as Diagnostic::path.
inline std::vector<std::string> paths_of(const Diagnostics& problems) {
  std::vector<std::string> paths;
  for (const Diagnostic& each : problems) paths.push_back(each.path);
  return paths;
}

}  // namespace shardwise::test
