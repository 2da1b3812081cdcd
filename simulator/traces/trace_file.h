#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "planner/spec/text/diagnostic.h"
#include "simulator/traces/traced_run.h"

namespace shardwise::sim {

/// Told while a file is read: its bytes so far, packed as they are, and all of them. False stops.
using SayRead = std::function<bool(std::int64_t read, std::int64_t size)>;

/// Who hears of a file while it is read, on the thread that reads.
struct TraceListener {
  SayRead say;
  SpanSink spans;        // of the device, as they are read
  std::stop_token stop;  // ends the reading within a piece of the file
};

/// Reads a trace file, also one that gzip packed, in pieces. A missing file, a damaged archive, one
/// that unpacks to more than 100 times its size and 64 MiB (found before an event is read), what
/// read_trace refuses and a stopped reading are diagnostics. \throws IoError when the file exists
/// but cannot be read
Result<TracedRun> read_trace_file(const std::string& path, const TraceListener& listener = {});

/// Reads events as they come: the part of a trace before `each` returns false.
Result<TraceHead> read_trace_file_events(const std::string& path,
                                         const std::function<bool(const TraceEvent&)>& each,
                                         const SayRead& say = {});

/// Whether a file is a trace by its first bytes: packed by gzip, an array, or with the keys that
/// traces begin with. False when it cannot be read.
bool is_trace(const std::string& path);

}  // namespace shardwise::sim
