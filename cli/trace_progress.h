#pragma once

#include <string>

#include "planner/spec/text/diagnostic.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::cli {

/// Reads a trace file; a progress line says how far it is. \throws IoError
Result<sim::TracedRun> read_trace(const std::string& path);

}  // namespace shardwise::cli
