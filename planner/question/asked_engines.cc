#include "planner/question/asked_engines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/engines/engines.h"
#include "planner/question/flags.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/split.h"

namespace shardwise {

const EngineProfile* read_engine(const std::string& name, Diagnostics& problems) {
  const EngineProfile* engine = find_engine(name);
  if (engine != nullptr) return engine;
  const auto near = nearest(name, engine_names());
  problems.push_back(wrong_flag("--engine", fmt::format("'{}' is not an engine", name),
                                near ? fmt::format("did you mean {}?", *near)
                                     : fmt::format("use {}", fmt::join(engine_names(), ", "))));
  return nullptr;
}

Result<std::vector<const EngineProfile*>> read_engines(const std::string& names) {
  Diagnostics problems;
  std::vector<const EngineProfile*> engines;
  std::vector<std::string> asked;
  if (names == "all") {
    asked = engine_names();
  } else {
    asked = split_at(names, ',');
    if (names.empty()) asked = {kUsualEngine};
  }
  for (const std::string& name : asked) {
    const EngineProfile* engine = read_engine(name, problems);
    const bool twice = std::find(engines.begin(), engines.end(), engine) != engines.end();
    if (engine != nullptr && !twice) engines.push_back(engine);
  }
  if (!problems.empty()) return problems;
  return engines;
}

}  // namespace shardwise
