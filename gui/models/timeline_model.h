#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/spec/plan.h"
#include "planner/spec/report.h"
#include "planner/spec/step_program.h"
#include "simulator/palette.h"

namespace shardwise::view {

/// An operation on a lane, or neighbours of one kind and micro-batch.
struct Span {
  double start = 0;   // seconds
  double active = 0;  // from here on it moves or computes; before it waits for others
  double end = 0;
  sim::Paint paint = sim::Paint::forward;
  std::int16_t chunk = 0;
  std::int32_t microbatch = -1;
  std::uint32_t operation = 0;  // the first of the stage's program that it is
};

/// One stream of one stage. Spans are in time and do not overlap.
struct Lane {
  std::size_t stage = 0;
  Stream stream = Stream::compute;
  std::string label;  // "stage 0", "send"
  std::vector<Span> spans;
  double busy = 0;  // seconds of it all
};

/// From when until when something moved and the stage computed nothing.
struct Exposed {
  double from = 0;
  double to = 0;
};

/// A step as lanes.
struct StepLanes {
  double length = 0;  // seconds
  std::vector<Lane> lanes;
  std::vector<std::vector<Exposed>> exposed;       // by stage, in time
  std::array<bool, sim::kPaints.size()> paints{};  // that spans have
  std::string problem;                             // why there are none
  bool simulated = false;
  std::shared_ptr<const StepReport> report;  // of the simulated step
};

/// Whether a lane is drawn where not all are: compute, and what is busy for a while.
bool is_told(const StepLanes& step, const Lane& lane);

/// The simulated step of a plan.
StepLanes step_lanes(const Plan& plan);

/// What a column of pixels shows of a lane: the share of its time that is busy, and the paint that
/// most of it has.
struct Coverage {
  float share = 0;  // 0 to 1
  sim::Paint paint = sim::Paint::forward;
};

/// Part of a step that is drawn.
struct TimeRange {
  double from = 0;
  double to = 0;
  double length() const { return to - from; }
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// The busy share of each of `columns` equal parts of the range. Spans of any length count by their
/// length: many short ones are as busy as one long.
std::vector<Coverage> coverage(std::span<const Span> spans, TimeRange range, std::size_t columns);

/// The spans that are in the range: a part of `spans`.
std::span<const Span> spans_in(std::span<const Span> spans, TimeRange range);

/// The range after zooming by `factor` (below 1: closer) with the time at `share` of it unmoved,
/// within a step of that length.
TimeRange zoomed(TimeRange range, double factor, double share, double length);
/// The same after moving by `share` of what is drawn.
TimeRange panned(TimeRange range, double share, double length);

/// "forward, micro-batch 3: 12.1 ms, waits 0.2 ms".
std::string span_text(const Span& span);

}  // namespace shardwise::view
