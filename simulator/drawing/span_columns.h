#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/recorded/recorded_step.h"
#include "planner/recorded/traffic_axis.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/paint.h"

namespace shardwise::sim {

/// The operations of one stream of a rank, in time, as columns of one length. They do not overlap.
struct SpanColumns {
  Stream stream = Stream::compute;
  std::vector<double> start;         // seconds: the stream turned to it
  std::vector<double> active_start;  // it moves or computes; before, it waits for others
  std::vector<double> end;
  std::vector<float> exposed;  // seconds of it with nothing on the rank's compute stream
  std::vector<Paint> kind;
  std::vector<std::int16_t> chunk;
  std::vector<std::int32_t> microbatch;  // -1: of the whole step
  std::vector<std::int32_t> layer;       // -1: of none
  std::vector<std::uint32_t> operation;  // of the rank's program

  TrafficAxis axis() const { return axis_of(stream); }
  std::size_t size() const { return start.size(); }
  bool empty() const { return start.empty(); }
  void reserve(std::size_t count);
  void push_back(const RecordedSpan& span, double exposed_seconds, const ProgramOp& op,
                 std::uint32_t index);
};

/// A rank's step: its streams that have operations, in the order of Stream.
struct RankSpans {
  std::int64_t rank = 0;
  std::size_t stage = 0;
  std::vector<SpanColumns> streams;

  /// Spans of the compute stream; null where nothing runs on it.
  const SpanColumns* computing() const;
};

/// Spans of a simulated or a recorded rank.
RankSpans rank_spans(const RecordedStep& step, std::int64_t rank);

/// From when until when streams moved something while the rank computed nothing.
struct Exposed {
  double from = 0;
  double to = 0;
  std::uint16_t streams = 0;  // a bit for each Stream that moved

  int count() const;  // of them
};

/// In time, without gaps of no length. The sum of (to - from) x count() is the exposed time of all
/// streams, as reports have it.
std::vector<Exposed> exposed_stretches(const RankSpans& rank);

/// Neighbours of one kind, micro-batch and chunk without a gap are one block, as layers of a pass
/// are. \returns the first span of each block
std::vector<std::uint32_t> block_starts(const SpanColumns& spans);

}  // namespace shardwise::sim
