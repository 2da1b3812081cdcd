#include "gui/models/timeline/exposed_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "planner/spec/text/format.h"
#include "simulator/drawing/palette.h"

namespace shardwise::view {
namespace {

std::string_view words_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::send_recv:
      return "message";
  }
  return "message";
}

std::string_view inside_words(TrafficAxis axis) {
  if (axis == TrafficAxis::tp) return "tensor-parallel communication";
  return axis == TrafficAxis::cp ? "context-parallel communication" : "all-to-all of experts";
}

/// What an operation on a stream of its own moves, and of what.
std::string moved_words(const StageProgram& program, const ProgramOp& op) {
  const CollectiveWork* const work = program.communication(op);
  const std::string_view kind = work == nullptr ? "communication" : words_of(work->kind);
  switch (op.role) {
    case OpRole::gather:
    case OpRole::gather_outer:
      return fmt::format("{} of {}", kind, op.routed ? "experts' parameters" : "parameters");
    case OpRole::gather_updated:
      return fmt::format("{} of updated parameters", kind);
    case OpRole::reduce:
    case OpRole::reduce_outer:
      return fmt::format("{} of {}", kind, op.routed ? "experts' gradients" : "gradients");
    case OpRole::gradient_norm:
      return fmt::format("{} of the gradients' norm", kind);
    case OpRole::send_forward:
    case OpRole::receive_forward:
      return "message of activations";
    case OpRole::send_backward:
    case OpRole::receive_backward:
      return "message of gradients";
    case OpRole::offload:
      return "offload to the host";
    case OpRole::reload:
      return "reload from the host";
    default:
      break;
  }
  if (op.stream == Stream::expert_parallel) return fmt::format("{} of experts", kind);
  if (op.stream == Stream::tensor_parallel) return fmt::format("tensor-parallel {}", kind);
  if (op.stream == Stream::context_parallel) return fmt::format("context-parallel {}", kind);
  return std::string(kind);
}

/// ", layer 12, micro-batch 3".
std::string place_words(const sim::SpanColumns& spans, std::size_t span, bool computes) {
  std::string text;
  if (spans.layer[span] >= 0) text += fmt::format(", layer {}", spans.layer[span]);
  if (computes) {
    text += fmt::format(", {}", sim::kPaints[static_cast<std::size_t>(spans.kind[span])].name);
  }
  if (spans.microbatch[span] >= 0) text += fmt::format(", micro-batch {}", spans.microbatch[span]);
  return text;
}

std::string exposed_of(double exposed, double whole) {
  return fmt::format("{} exposed of {}", format_seconds(Seconds(exposed)),
                     format_seconds(Seconds(whole)));
}

/// The axis inside a span that is exposed longest.
std::size_t worst_axis(const WithinSpan& within) {
  return static_cast<std::size_t>(std::ranges::max_element(within.exposed) -
                                  within.exposed.begin());
}

/// \param place  between what moves and how long
std::string words_with(const StepLanes& step, const Lane& lane, std::size_t span,
                       std::string_view place) {
  const sim::SpanColumns& spans = lane.spans;
  if (lane.stream == Stream::compute) {
    if (lane.within.empty() || lane.within[span].sum() <= 0) return "";
    const WithinSpan& within = lane.within[span];
    const std::size_t worst = worst_axis(within);
    std::string text = fmt::format("{}{}: {}", inside_words(WithinSpan::kAxes[worst]), place,
                                   exposed_of(static_cast<double>(within.exposed[worst]),
                                              static_cast<double>(within.alone[worst])));
    const double others = within.sum() - static_cast<double>(within.exposed[worst]);
    if (others > 0) text += fmt::format(", of other axes {}", format_seconds(Seconds(others)));
    return text;
  }
  if (spans.exposed[span] <= 0) return "";
  const double exposed = static_cast<double>(spans.exposed[span]);
  std::string what = "communication";
  if (step.simulation) {
    const StageProgram& program = step.simulation->program.stages[lane.stage];
    what = moved_words(program, program.operations[spans.operation[span]]);
  }
  return fmt::format("{}{}: {}", what, place,
                     exposed_of(exposed, spans.end[span] - spans.active_start[span]));
}

}  // namespace

std::string exposed_words(const StepLanes& step, const Lane& lane, std::size_t span) {
  return words_with(step, lane, span, "");
}

std::optional<WorstSpan> worst_span(const StepLanes& step) {
  double most = 0;
  const Lane* found = nullptr;
  std::size_t at = 0;
  for (const Lane& lane : step.lanes) {
    for (std::size_t i = 0; i < lane.spans.size(); ++i) {
      const double exposed = lane.exposed_in(i, i + 1);
      if (exposed <= most) continue;
      most = exposed;
      found = &lane;
      at = i;
    }
  }
  if (found == nullptr) return std::nullopt;
  const bool computes = found->stream == Stream::compute;
  return WorstSpan{{name_of(*found), at},
                   words_with(step, *found, at, place_words(found->spans, at, computes))};
}

}  // namespace shardwise::view
