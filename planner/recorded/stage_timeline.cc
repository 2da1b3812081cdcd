#include "planner/recorded/stage_timeline.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "planner/recorded/traffic_axis.h"

namespace shardwise {
namespace {

/// The operations of each stream, as they run.
std::array<std::vector<std::uint32_t>, kStreams> by_stream(const StageProgram& program) {
  std::array<std::vector<std::uint32_t>, kStreams> streams;
  for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
    streams[static_cast<std::size_t>(program.operations[op].stream)].push_back(op);
  }
  return streams;
}

}  // namespace

Seconds TimeParts::*part_of(OpRole role) {
  switch (role) {
    case OpRole::forward:
      return &TimeParts::forward;
    case OpRole::backward:
    case OpRole::backward_input:
    case OpRole::backward_weight:
      return &TimeParts::backward;
    case OpRole::recompute:
      return &TimeParts::recompute;
    case OpRole::finalize:
    case OpRole::gradient_norm:
    case OpRole::optimizer:
      return &TimeParts::optimizer;
    default:
      return &TimeParts::dp_exposed;  // copies and casts around gathers and reductions
  }
}

std::vector<double> exposed_times(const RecordedStep& step) {
  const auto streams = by_stream(*step.program);
  const std::vector<std::uint32_t>& kernels = streams[static_cast<std::size_t>(Stream::compute)];
  std::vector<double> exposed(step.spans.size(), 0.0);
  for (std::size_t s = 1; s < kStreams; ++s) {
    // Both lists ascend: one walk along the kernels for each stream.
    std::size_t first = 0;
    for (const std::uint32_t op : streams[s]) {
      const double from = step.spans[op].met;
      const double to = step.spans[op].end;
      while (first < kernels.size() && step.spans[kernels[first]].end <= from) ++first;
      double hidden = 0;
      for (std::size_t k = first; k < kernels.size(); ++k) {
        const RecordedSpan& beside = step.spans[kernels[k]];
        if (beside.begin >= to) break;
        hidden += std::min(to, beside.end) - std::max(from, beside.begin);
      }
      exposed[op] = std::max(0.0, to - from - hidden);
    }
  }
  return exposed;
}

StageTimeline stage_timeline(const RecordedStep& step, std::vector<OperationTime>& operations) {
  const StageProgram& program = *step.program;
  const std::vector<double> exposed = exposed_times(step);
  std::array<StreamTime, kStreams> streams;
  std::map<std::string, std::size_t> by_name;
  Seconds computed;
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    ProgramOp op = program.operations[i];
    const RecordedSpan& span = step.spans[i];
    Seconds time(span.end - span.met);
    if (op.role == OpRole::optimizer) time += std::exchange(computed, Seconds(0));
    computed += Seconds(span.ready - span.begin);
    StreamTime& stream = streams[static_cast<std::size_t>(op.stream)];
    ++stream.operations;
    stream.busy += time;
    stream.exposed += Seconds(exposed[i]);
    op.microbatch = -1;
    const auto [at, fresh] = by_name.try_emplace(name_of(program, op), operations.size());
    if (fresh) {
      operations.push_back({at->first, program.stage, std::string(name_of(op.stream)), 0, {}, {}});
    }
    OperationTime& entry = operations[at->second];
    ++entry.count;
    entry.time += time;
    entry.exposed += Seconds(exposed[i]);
  }
  StageTimeline made;
  made.stage = program.stage;
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (streams[s].operations == 0) continue;
    streams[s].stream = name_of(static_cast<Stream>(s));
    made.streams.push_back(streams[s]);
  }
  made.computing = streams[static_cast<std::size_t>(Stream::compute)].busy;
  made.idle = std::max(Seconds(0), Seconds(step.length) - made.computing);
  return made;
}

std::size_t busiest_of(std::span<const StageTimeline> stages) {
  const auto busiest = std::ranges::max_element(stages, {}, &StageTimeline::computing);
  return static_cast<std::size_t>(busiest - stages.begin());
}

double overlap_of(std::span<const StageTimeline> stages) {
  Seconds communicated;
  Seconds exposed;
  for (const StageTimeline& stage : stages) {
    for (const StreamTime& stream : stage.streams) {
      if (stream.stream == name_of(Stream::compute)) continue;
      communicated += stream.busy;
      exposed += stream.exposed;
    }
  }
  return communicated > Seconds(0) ? 1 - exposed / communicated : 0;
}

std::vector<AxisTime> times_by_axis(const StageTimeline& stage) {
  std::map<std::string_view, AxisTime> axes;
  for (const StreamTime& stream : stage.streams) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const TrafficAxis which = axis_of(static_cast<Stream>(s));
      if (which == TrafficAxis::none || stream.stream != name_of(static_cast<Stream>(s))) continue;
      AxisTime& axis = axes[name_of(which)];
      axis.axis = name_of(which);
      axis.total += stream.busy;
      axis.exposed += stream.exposed;
    }
  }
  std::vector<AxisTime> all;
  for (const auto& [name, axis] : axes) {
    if (axis.total > Seconds(0)) all.push_back(axis);
  }
  return all;
}

}  // namespace shardwise
