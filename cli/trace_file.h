#pragma once

#include <string>

#include "planner/spec/diagnostic.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::cli {

/// Reads a trace file, also one that gzip packed, in pieces; a progress line says how far it is. A
/// missing file, a damaged archive and what sim::read_trace refuses are diagnostics; throws IoError
/// when the file exists but cannot be read.
Result<sim::TracedRun> read_trace_file(const std::string& path);

/// Whether a file is a trace by its first bytes: packed by gzip, an array, or with the keys that
/// traces begin with. False when it cannot be read.
bool is_trace(const std::string& path);

}  // namespace shardwise::cli
