#include "gui/models/timeline/timeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "answers/simulated_steps.h"
#include "gui/models/question/simulated.h"
#include "gui/models/timeline/exposed_words.h"
#include "planner/cost/collectives/collective.h"
#include "planner/lowering/price.h"
#include "planner/recorded/critical_path.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/step_report.h"
#include "simulator/drawing/timeline_ticks.h"
#include "simulator/drawing/timeline_windows.h"

namespace shardwise::view {
namespace {

constexpr double kLeastRange = 1e-7;  // of the step, to which people can zoom
constexpr std::size_t kMemoryColumns = 1024;

/// Buffer and bus bytes of every operation before each, where it is known what they move.
void add_bytes(const Plan& plan, const StageProgram& program, Lane& lane) {
  if (axis_of(lane.stream) == TrafficAxis::none) return;
  lane.moved = {0};
  lane.on_bus = {0};
  for (const std::uint32_t index : lane.spans.operation) {
    double bytes = 0;
    double factor = 0;
    const CollectiveWork* const work = program.communication(program.operations[index]);
    if (work != nullptr) {
      bytes = work->times * static_cast<double>(work->bytes);
      factor = bus_factor(work->kind, shape_of(*work, plan.cluster, plan.layout).ranks);
    }
    lane.moved.push_back(lane.moved.back() + bytes);
    lane.on_bus.push_back(lane.on_bus.back() + factor * bytes);
  }
}

std::size_t place_of(const StepLanes& step, const LaneName& name) {
  const auto found =
      std::ranges::find(step.lanes, name, [](const Lane& lane) { return name_of(lane); });
  return static_cast<std::size_t>(found - step.lanes.begin());
}

/// The span of an operation of a stage; nothing where its rank is not shown.
std::optional<ChosenSpan> chosen_at(const StepLanes& step, std::size_t stage, std::uint32_t op) {
  const StageProgram& program = step.simulation->program.stages[stage];
  const LaneName name{stage, program.operations[op].stream};
  const Lane* const lane = step.find(name);
  if (lane == nullptr) return std::nullopt;
  const auto found = std::ranges::lower_bound(lane->spans.operation, op);
  return ChosenSpan{name, static_cast<std::size_t>(found - lane->spans.operation.begin())};
}

/// The place of a shown rank's actor among all.
std::size_t actor_place(const StepLanes& step, std::size_t stage) {
  const sim::Actor& actor = step.simulation->actor_of(step.ranks[stage], stage);
  return static_cast<std::size_t>(&actor - step.simulation->work.actors.data());
}

/// Of the spans of a rank's compute stream.
std::vector<WithinSpan> within_spans(const std::vector<sim::WithinPass>& passes,
                                     const sim::SpanColumns* computing) {
  std::vector<WithinSpan> within;
  if (computing == nullptr) return within;
  within.reserve(computing->size());
  for (const std::uint32_t op : computing->operation) {
    WithinSpan& span = within.emplace_back();
    const sim::WithinPass& pass = passes[op];
    const std::array axes = {&pass.tp, &pass.cp, &pass.ep};
    for (std::size_t a = 0; a < axes.size(); ++a) {
      span.exposed[a] = static_cast<float>(axes[a]->exposed.value());
      span.alone[a] = static_cast<float>(axes[a]->alone.value());
    }
  }
  const bool any = std::ranges::any_of(within, [](const WithinSpan& span) {
    return std::ranges::any_of(span.alone, [](float seconds) { return seconds > 0; });
  });
  return any ? within : std::vector<WithinSpan>();
}

void add_stage(const Plan& plan, const StepQuestion& question, std::size_t stage, StepLanes& step) {
  const sim::Simulation& simulation = *step.simulation;
  const sim::Actor& actor = simulation.actor_of(step.ranks[stage], stage);
  sim::RankSpans spans =
      sim::rank_spans(sim::recorded(sim::run_times(simulation, actor)), step.ranks[stage]);
  std::vector<WithinSpan> within =
      within_spans(sim::within_passes(plan, simulation, actor, question.scales), spans.computing());
  step.exposed.push_back(make_strip(spans, within));
  if (spans.computing() == nullptr) spans.streams.insert(spans.streams.begin(), sim::SpanColumns());
  for (sim::SpanColumns& each : spans.streams) {
    const bool computes = each.stream == Stream::compute;
    Lane lane = make_lane(stage, spans.rank, std::move(each),
                          computes ? std::move(within) : std::vector<WithinSpan>());
    if (lane.stream == Stream::compute) lane.label = fmt::format("stage {}", stage);
    add_bytes(plan, simulation.program.stages[stage], lane);
    for (const sim::Paint paint : lane.spans.kind) {
      step.paints[static_cast<std::size_t>(paint)] = true;
    }
    step.lanes.push_back(std::move(lane));
  }
}

void add_path(StepLanes& step) {
  step.path.resize(step.lanes.size());
  const std::vector<RecordedStep> ranks = sim::recorded_ranks(*step.simulation);
  std::vector<std::size_t> stage_of(ranks.size(), step.ranks.size());
  for (std::size_t s = 0; s < step.ranks.size(); ++s) stage_of[actor_place(step, s)] = s;
  for (const StepPlace& at : critical_chain(ranks)) {
    if (stage_of[at.rank] == step.ranks.size()) continue;
    const std::optional<ChosenSpan> span = chosen_at(step, stage_of[at.rank], at.op);
    if (span)
      step.path[place_of(step, span->lane)].push_back(static_cast<std::uint32_t>(span->span));
  }
}

}  // namespace

const Lane* StepLanes::find(const LaneName& name) const {
  const std::size_t place = place_of(*this, name);
  return place == lanes.size() ? nullptr : &lanes[place];
}

StepLanes step_lanes(const Plan& plan, const StepQuestion& question, const std::stop_token& stop) {
  StepLanes step;
  if (!is_simulated(plan)) {
    const std::int64_t passes = sim::layer_passes_of_step(plan);
    step.problem = fmt::format("{} passes of layers in a step are too many to draw: {} at most",
                               format_count(passes), format_count(kMostPasses));
    return step;
  }
  sim::SimulationOptions options;
  options.scales = question.scales;
  std::optional<sim::Simulation> made = sim::simulate(plan, options, stop);
  if (!made) return step;
  step.plan = std::make_shared<const Plan>(plan);
  step.simulation = std::make_shared<const sim::Simulation>(std::move(*made));
  step.report = std::make_shared<const StepReport>(step.simulation->report);
  step.length = step.simulation->timeline.length();
  const std::int64_t rank = question.rank < plan.layout.world() ? question.rank : 0;
  step.ranks = group_ranks(plan.layout, GroupKind::pp, rank);
  for (std::size_t s = 0; s < step.simulation->program.stages.size(); ++s) {
    add_stage(plan, question, s, step);
  }
  add_path(step);
  step.worst = worst_span(step);
  const auto worst = static_cast<std::size_t>(step.report->verdict.worst_stage);
  step.memory = memory_course(*step.simulation, plan.engine.allocator,
                              std::min(worst, step.ranks.size() - 1), kMemoryColumns);
  step.simulated = true;
  return step;
}

bool is_told(const StepLanes& step, const Lane& lane) {
  constexpr double kLittle = 0.005;  // of the step
  return lane.stream == Stream::compute || lane.busy >= kLittle * step.length;
}

bool is_exposed(const StepLanes& step, const Lane& lane) {
  constexpr double kTold = 0.01;  // of the step
  return lane.exposed.back() >= kTold * step.length;
}

std::vector<ChosenSpan> waited_for(const StepLanes& step, const ChosenSpan& span) {
  std::vector<ChosenSpan> found;
  const Lane* const lane = step.find(span.lane);
  if (lane == nullptr || span.span >= lane->spans.size() || !step.simulation) return found;
  const std::vector<RecordedStep> ranks = sim::recorded_ranks(*step.simulation);
  const StepPlace at{actor_place(step, lane->stage), lane->spans.operation[span.span]};
  for (const StepPlace& each : shardwise::waited_for(ranks, at)) {
    for (std::size_t s = 0; s < step.ranks.size(); ++s) {
      if (actor_place(step, s) != each.rank) continue;
      const std::optional<ChosenSpan> chosen = chosen_at(step, s, each.op);
      if (chosen) found.push_back(*chosen);
    }
  }
  return found;
}

std::vector<DrawnPart> drawn_parts(const StepLanes& step, double width) {
  std::vector<DrawnPart> parts;
  if (!step.simulation || !step.plan) return {{{0, step.length}, 0, width}};
  for (const sim::TimeWindow& each : sim::drawn_windows(*step.plan, *step.simulation, 0, width)) {
    parts.push_back({{each.from, each.to}, each.left, each.right});
  }
  return parts;
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

TimeRange focused(const Lane& lane, std::size_t span, double length) {
  constexpr double kRoom = 4;  // spans of that length
  const double from = lane.spans.start[span];
  const double to = lane.spans.end[span];
  const double wanted = std::clamp(kRoom * (to - from), kLeastRange * length, length);
  const double begin = std::clamp((from + to - wanted) / 2, 0.0, length - wanted);
  return {begin, begin + wanted};
}

std::string span_name(const StepLanes& step, const Lane& lane, std::size_t span) {
  const StageProgram& program = step.simulation->program.stages[lane.stage];
  return shardwise::name_of(program, program.operations[lane.spans.operation[span]]);
}

std::string span_text(const StepLanes& step, const Lane& lane, std::size_t span) {
  const sim::SpanColumns& spans = lane.spans;
  const double seconds = spans.end[span] - spans.active_start[span];
  std::string text = step.simulation ? span_name(step, lane, span) + "\n" : "";
  text += sim::kPaints[static_cast<std::size_t>(spans.kind[span])].name;
  if (spans.microbatch[span] >= 0) text += fmt::format(", micro-batch {}", spans.microbatch[span]);
  if (spans.layer[span] >= 0) text += fmt::format(", layer {}", spans.layer[span]);
  text += fmt::format("\n{} from {}", format_seconds(Seconds(seconds)),
                      seconds > 0
                          ? sim::moment_text(Seconds(spans.active_start[span]), Seconds(seconds))
                          : format_seconds(Seconds(spans.active_start[span])));
  const double waited = spans.active_start[span] - spans.start[span];
  if (waited > 0) text += fmt::format("\nwaited {} before", format_seconds(Seconds(waited)));
  const std::string exposed = exposed_words(step, lane, span);
  if (!exposed.empty()) text += "\n" + exposed;
  if (lane.moved.empty() || seconds <= 0) return text;
  const double bytes = lane.moved[span + 1] - lane.moved[span];
  if (bytes <= 0) return text;
  const double on_bus = lane.on_bus[span + 1] - lane.on_bus[span];
  return text + fmt::format("\n{}, bus {}", format_bytes(Bytes(static_cast<std::int64_t>(bytes))),
                            format_bandwidth(BytesPerSecond(on_bus / seconds)));
}

std::optional<ChosenSpan> next_match(const StepLanes& step, const std::string& words,
                                     const std::optional<ChosenSpan>& chosen) {
  if (!step.simulation || words.empty()) return std::nullopt;
  const std::size_t lanes = step.lanes.size();
  std::size_t first_lane = 0;
  std::size_t first_span = 0;
  if (chosen) {
    first_lane = std::min(place_of(step, chosen->lane), lanes - 1);
    first_span = chosen->span + 1;
  }
  // Once around; the first lane's begin comes last.
  for (std::size_t turn = 0; turn <= lanes; ++turn) {
    const Lane& lane = step.lanes[(first_lane + turn) % lanes];
    const std::size_t begin = turn == 0 ? first_span : 0;
    for (std::size_t i = begin; i < lane.spans.size(); ++i) {
      if (span_name(step, lane, i).find(words) != std::string::npos) {
        return ChosenSpan{name_of(lane), i};
      }
    }
  }
  return std::nullopt;
}

}  // namespace shardwise::view
