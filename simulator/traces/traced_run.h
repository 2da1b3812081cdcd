#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "planner/spec/text/diagnostic.h"
#include "simulator/traces/operation_record.h"
#include "simulator/traces/profiled_steps.h"
#include "simulator/traces/trace_reader.h"

namespace shardwise::sim {

/// Run as a trace file has it: operations by the names of our step programs, or kernels of a
/// profiler. One of the two is there.
struct TracedRun {
  TraceHead head;
  std::vector<OperationStep> operations;  // of a trace of ours, a step each
  bool by_profiler = false;
  ProfiledSteps profiled;  // of a profiler's trace
  std::size_t ranks = 1;
  std::map<std::string, std::int64_t> not_read;  // a profiler's events of unknown categories

  bool ours() const { return !by_profiler; }
  /// Step of median length in a trace of ours, the shorter of two.
  const OperationStep& median_operations() const;
};

/// An operation, kernel or copy of a trace, as it is read.
struct ReadSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t process = 0;
  std::int64_t thread = 0;
};
/// Takes spans in the order of the file, some thousands at a time.
using SpanSink = std::function<void(std::span<const ReadSpan>)>;

/// Reads a trace of ours ("shardwise.trace/1") or a PyTorch profiler's. Events may stand in any
/// order. Besides what read_trace_events refuses: another schema, operations or device events
/// without a time, and traces with neither, whose message lists what they have.
Result<TracedRun> read_trace(const ByteSource& source, const std::string& file,
                             const SpanSink& spans = {});

}  // namespace shardwise::sim
