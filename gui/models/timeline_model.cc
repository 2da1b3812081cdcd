#include "gui/models/timeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "gui/models/simulated.h"
#include "planner/spec/format.h"
#include "simulator/planning/simulated_steps.h"
#include "simulator/simulate.h"
#include "simulator/step_report.h"
#include "simulator/timeline_blocks.h"

namespace shardwise::view {
namespace {

constexpr double kLeastRange = 1e-7;  // of the step, to which people can zoom

std::string lane_label(std::size_t stage, Stream stream) {
  if (stream == Stream::compute) return fmt::format("stage {}", stage);
  std::string label(name_of(stream));
  std::ranges::replace(label, '_', ' ');
  return label;
}

std::vector<Span> lane_spans(const sim::StageRunTimes& run, Stream stream) {
  std::vector<Span> spans;
  const auto which = static_cast<std::size_t>(stream);
  for (std::uint32_t i = run.work->stream_begin[which]; i < run.work->stream_begin[which + 1];
       ++i) {
    const std::uint32_t index = run.work->operations[i].index;
    const RecordedSpan ran = sim::span_of(run, index);
    const ProgramOp& op = run.work->program->operations[index];
    const Span span{ran.begin, ran.met, ran.end, sim::paint_of(op), op.chunk, op.microbatch, index};
    if (!spans.empty()) {
      // Layers of one pass one after the other are one block.
      Span& last = spans.back();
      const bool same = last.paint == span.paint && last.microbatch == span.microbatch &&
                        last.chunk == span.chunk && span.start == last.end &&
                        span.active == span.start;
      if (same) {
        last.end = span.end;
        continue;
      }
    }
    spans.push_back(span);
  }
  return spans;
}

/// Times in which one of the stage's other lanes is active and none of its compute is.
std::vector<Exposed> exposed_of(std::span<const Lane> lanes, std::size_t stage) {
  std::vector<Exposed> moving;
  const Lane* computed = nullptr;
  for (const Lane& lane : lanes) {
    if (lane.stage != stage) continue;
    if (lane.stream == Stream::compute) {
      computed = &lane;
      continue;
    }
    for (const Span& span : lane.spans) {
      if (span.end > span.active) moving.push_back({span.active, span.end});
    }
  }
  std::ranges::sort(moving, {}, &Exposed::from);
  std::vector<Exposed> found;
  std::size_t next = 0;  // of the compute spans
  double done = 0;       // up to here all is filed
  for (const Exposed& each : moving) {
    double from = std::max(each.from, done);
    while (from < each.to) {
      const auto& spans = computed->spans;
      while (next < spans.size() && spans[next].end <= from) ++next;
      const bool inside = next < spans.size() && spans[next].start <= from;
      if (inside) {
        from = spans[next].end;
        continue;
      }
      const double until = next < spans.size() ? std::min(each.to, spans[next].start) : each.to;
      if (!found.empty() && found.back().to == from) {
        found.back().to = until;
      } else {
        found.push_back({from, until});
      }
      from = until;
    }
    done = std::max(done, each.to);
  }
  return found;
}

}  // namespace

StepLanes step_lanes(const Plan& plan) {
  StepLanes step;
  if (!is_simulated(plan)) {
    const std::int64_t passes = sim::layer_passes_of_step(plan);
    step.problem = fmt::format("{} passes of layers in a step are too many to draw: {} at most",
                               format_count(passes), format_count(kMostPasses));
    return step;
  }
  sim::Simulation simulation = sim::simulate(plan);
  step.simulated = true;
  step.length = simulation.timeline.length();
  for (std::size_t s = 0; s < simulation.program.stages.size(); ++s) {
    const sim::StageRunTimes run = sim::run_times(simulation, s);
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const auto which = static_cast<Stream>(stream);
      Lane lane{s, which, lane_label(s, which), lane_spans(run, which), 0};
      for (const Span& span : lane.spans) {
        lane.busy += span.end - span.active;
        step.paints[static_cast<std::size_t>(span.paint)] = true;
      }
      if (which == Stream::compute || !lane.spans.empty()) step.lanes.push_back(std::move(lane));
    }
    step.exposed.push_back(exposed_of(step.lanes, s));
  }
  step.report = std::make_shared<const StepReport>(std::move(simulation.report));
  return step;
}

bool is_told(const StepLanes& step, const Lane& lane) {
  constexpr double kLittle = 0.005;  // of the step
  return lane.stream == Stream::compute || lane.busy >= kLittle * step.length;
}

std::span<const Span> spans_in(std::span<const Span> spans, TimeRange range) {
  const auto first =
      std::ranges::partition_point(spans, [&](const Span& span) { return span.end <= range.from; });
  const auto last = std::partition_point(first, spans.end(),
                                         [&](const Span& span) { return span.start < range.to; });
  return {first, last};
}

std::vector<Coverage> coverage(std::span<const Span> spans, TimeRange range, std::size_t columns) {
  std::vector<Coverage> covered(columns);
  if (columns == 0 || range.length() <= 0) return covered;
  const double column = range.length() / static_cast<double>(columns);
  std::array<double, sim::kPaints.size()> of_paint{};
  std::size_t at = 0;  // the column that of_paint is of
  const auto close = [&](std::size_t which) {
    const auto most = std::ranges::max_element(of_paint);
    if (*most > 0) covered[which].paint = static_cast<sim::Paint>(most - of_paint.begin());
    of_paint.fill(0);
  };
  for (const Span& span : spans_in(spans, range)) {
    const double from = std::max(span.active, range.from);
    const double to = std::min(span.end, range.to);
    if (to <= from) continue;
    const auto index = [&](double time) {
      return std::min(columns - 1, static_cast<std::size_t>((time - range.from) / column));
    };
    const std::size_t last = index(to);
    for (std::size_t c = index(from); c <= last; ++c) {
      const double begin = range.from + static_cast<double>(c) * column;
      const double part = std::min(to, begin + column) - std::max(from, begin);
      if (part <= 0) continue;
      if (c != at) {
        close(at);
        at = c;
      }
      of_paint[static_cast<std::size_t>(span.paint)] += part;
      covered[c].share += static_cast<float>(part / column);
    }
  }
  close(at);
  for (Coverage& each : covered) each.share = std::min(each.share, 1.0F);
  return covered;
}

TimeRange zoomed(TimeRange range, double factor, double share, double length) {
  const double wanted = std::clamp(range.length() * factor, kLeastRange * length, length);
  const double still = range.from + share * range.length();
  const double from = std::clamp(still - share * wanted, 0.0, length - wanted);
  return {from, from + wanted};
}

TimeRange panned(TimeRange range, double share, double length) {
  const double by = share * range.length();
  const double from = std::clamp(range.from + by, 0.0, std::max(0.0, length - range.length()));
  return {from, from + range.length()};
}

std::string span_text(const Span& span) {
  std::string text(sim::kPaints[static_cast<std::size_t>(span.paint)].name);
  if (span.microbatch >= 0) text += fmt::format(", micro-batch {}", span.microbatch);
  text += fmt::format("\n{} from {}", format_seconds(Seconds(span.end - span.active)),
                      format_seconds(Seconds(span.active)));
  if (span.active > span.start) {
    text += fmt::format("\nwaited {} before", format_seconds(Seconds(span.active - span.start)));
  }
  return text;
}

}  // namespace shardwise::view
