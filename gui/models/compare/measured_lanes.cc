#include "gui/models/compare/measured_lanes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "simulator/traces/work_kind.h"
#include "simulator/workload/paint.h"

namespace shardwise::view {
namespace {

/// Something that ran.
struct Span {
  double start = 0;   // seconds
  double active = 0;  // before, it waited for others
  double end = 0;
  sim::Paint paint = sim::Paint::forward;
  std::int32_t microbatch = -1;
};
using Lanes = std::map<std::pair<std::size_t, Stream>, std::vector<Span>>;

std::unordered_map<std::string, sim::Paint> paints_by_name(const StepProgram& program) {
  std::unordered_map<std::string, sim::Paint> paints;
  for (const StageProgram& stage : program.stages) {
    for (ProgramOp op : stage.operations) {
      op.microbatch = -1;
      paints.try_emplace(shardwise::name_of(stage, op), sim::paint_of(op));
    }
  }
  return paints;
}

/// What names the plan's step lacks are drawn as.
sim::Paint paint_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return sim::Paint::forward;
    case Stream::all_gather:
      return sim::Paint::gather;
    case Stream::reduce_scatter:
    case Stream::outer_reduce:
      return sim::Paint::reduce;
    case Stream::send:
    case Stream::receive:
      return sim::Paint::message;
    default:
      return sim::Paint::layer;
  }
}

void add_operation_spans(Lanes& lanes, const sim::OperationStep& step, const StepProgram& program) {
  const auto paints = paints_by_name(program);
  for (const sim::OperationRun& run : step.runs) {
    const sim::OperationSum& operation = step.operations[run.operation];
    const Stream stream = run.stream.value_or(Stream::compute);
    const auto known = paints.find(operation.name);
    Span span;
    span.start = run.begin;
    span.active = run.start;
    span.end = run.end;
    span.paint = known != paints.end() ? known->second : paint_of(stream);
    span.microbatch = run.microbatch;
    lanes[{static_cast<std::size_t>(operation.stage), stream}].push_back(span);
  }
}

/// The stream on which our step has work of a kind.
Stream stream_of(sim::WorkKind kind) {
  switch (kind) {
    case sim::WorkKind::all_gather:
      return Stream::all_gather;
    case sim::WorkKind::reduce_scatter:
    case sim::WorkKind::all_reduce:
    case sim::WorkKind::other_collective:
      return Stream::reduce_scatter;
    case sim::WorkKind::all_to_all:
      return Stream::expert_parallel;
    case sim::WorkKind::send_recv:
      return Stream::send;
    case sim::WorkKind::copy:
      return Stream::host_copy;
    default:
      return Stream::compute;
  }
}

sim::Paint paint_of(const sim::DeviceWork& work) {
  if (!sim::computes(work.kind)) return paint_of(stream_of(work.kind));
  switch (work.phase) {
    case sim::StepPhase::backward:
      return sim::Paint::backward;
    case sim::StepPhase::optimizer:
      return sim::Paint::optimizer;
    default:
      return sim::Paint::forward;
  }
}

/// Sorts a lane and cuts what overlaps.
void put_in_order(std::vector<Span>& spans) {
  std::ranges::stable_sort(spans, {}, &Span::start);
  double end = 0;
  for (Span& span : spans) {
    span.start = std::max(span.start, end);
    span.active = std::max(span.active, span.start);
    span.end = std::max(span.end, span.active);
    end = span.end;
  }
  std::erase_if(spans, [](const Span& span) { return span.end <= span.start; });
}

sim::SpanColumns columns_of(Stream stream, const std::vector<Span>& spans) {
  sim::SpanColumns columns;
  columns.stream = stream;
  columns.reserve(spans.size());
  for (const Span& span : spans) {
    ProgramOp op;
    op.stream = stream;
    op.microbatch = span.microbatch;
    columns.push_back({span.start, span.start, span.active, span.end}, 0, op,
                      static_cast<std::uint32_t>(columns.size()));
    columns.kind.back() = span.paint;
  }
  return columns;
}

}  // namespace

const Lane* MeasuredLanes::find(std::size_t stage, Stream stream) const {
  const auto found = std::ranges::find_if(
      lanes, [&](const Lane& lane) { return lane.stage == stage && lane.stream == stream; });
  return found == lanes.end() ? nullptr : &*found;
}

MeasuredLanes measured_lanes(const Compared& other, const StepProgram& program, std::size_t stage) {
  MeasuredLanes made;
  made.length = other.report.step_time.value();
  if (other.plan) {
    StepLanes step = step_lanes(*other.plan);
    if (!step.simulated) return made;
    made.length = step.length;
    made.lanes = std::move(step.lanes);
    return made;
  }
  if (!other.run) return made;
  Lanes lanes;
  if (other.run->ours()) {
    add_operation_spans(lanes, other.run->median_operations(), program);
  } else {
    for (const sim::DeviceWork& work : other.run->profiled.median_work) {
      Span span;
      span.start = span.active = work.start;
      span.end = work.end;
      span.paint = paint_of(work);
      lanes[{stage, stream_of(work.kind)}].push_back(span);
    }
  }
  for (auto& [key, spans] : lanes) {
    put_in_order(spans);
    made.lanes.push_back(make_lane(key.first, 0, columns_of(key.second, spans)));
  }
  return made;
}

double on_axis(double seconds, OwnRange own, double axis) {
  return (seconds - own.from) / own.length() * axis;
}

double off_axis(double seconds, OwnRange own, double axis) {
  return own.from + seconds / axis * own.length();
}

std::vector<float> busier(const Lane& predicted, const Lane& measured, OwnRange own, double axis,
                          TimeRange range, std::size_t columns) {
  const TimeRange there{off_axis(range.from, own, axis), off_axis(range.to, own, axis)};
  const std::vector<Coverage> ours = coverage(predicted, ColourBy::kind, range, columns);
  const std::vector<Coverage> theirs = coverage(measured, ColourBy::kind, there, columns);
  std::vector<float> more(columns);
  for (std::size_t c = 0; c < columns; ++c) more[c] = ours[c].share() - theirs[c].share();
  return more;
}

}  // namespace shardwise::view
