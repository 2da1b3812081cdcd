#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "planner/spec/text/diagnostic.h"
#include "simulator/traces/piecewise_text.h"
#include "simulator/traces/trace_event.h"

namespace shardwise::sim {

/// Facts of a trace besides its events.
struct TraceHead {
  std::string schema;  // "otherData": of traces of ours
  std::string origin;
  std::string plan_digest;
  std::string granularity;
  std::int64_t rank = -1;  // "distributedInfo": of a profiler's
  std::int64_t world_size = -1;
  std::string backend;
  std::string device;               // "deviceProperties": name of the first one
  bool has_schema_version = false;  // "schemaVersion": a profiler wrote it
  std::int64_t events = 0;
};

/// Reads a Chrome trace, an object with "traceEvents" or the array alone, piece by piece: memory
/// does not grow with the text. Events are told in the order of the text until `each` returns
/// false. Refuses what is not JSON (truncated text has its place), times that are no numbers or
/// beyond 95 years, and an object without "traceEvents".
/// \param file  the name put into diagnostics
/// Sources: "Trace Event Format" (Google, CatapultProject); pytorch/kineto@114171df,
/// libkineto/src/output_json.cpp.
Result<TraceHead> read_trace_events(const ByteSource& source, const std::string& file,
                                    const std::function<bool(const TraceEvent&)>& each);

}  // namespace shardwise::sim
