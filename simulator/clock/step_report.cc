#include "simulator/clock/step_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "planner/cost/layer/layer_time.h"
#include "planner/lowering/price.h"
#include "planner/recorded/critical_path.h"
#include "planner/recorded/recorded_step.h"
#include "planner/recorded/stage_timeline.h"
#include "simulator/clock/link_times.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kMostSamples = 2000;

/// Every n-th moment, and the one of the peak.
std::vector<MemorySample> samples_of(const MemoryCourse& course) {
  std::vector<MemorySample> samples;
  const std::size_t every = course.moments.size() / kMostSamples + 1;
  for (std::size_t i = 0; i < course.moments.size(); ++i) {
    const MemoryMoment& moment = course.moments[i];
    const bool kept = i % every == 0 || i + 1 == course.moments.size() ||
                      moment.allocated == course.peak_allocated;
    if (kept) {
      samples.push_back({Seconds(moment.at), Bytes(moment.allocated), Bytes(moment.reserved)});
    }
  }
  return samples;
}

std::vector<LiveBuffers> live_of(const MemoryCourse& course, const StageProgram& stage) {
  std::map<std::pair<MemoryCategory, std::int32_t>, LiveBuffers> live;
  for (const std::uint32_t index : course.alive) {
    const ProgramBuffer& buffer = stage.buffers[index];
    LiveBuffers& entry = live[{buffer.category, buffer.layer}];
    entry.category = buffer.category;
    entry.layer = buffer.layer;
    ++entry.count;
    entry.bytes += Bytes(buffer.bytes);
  }
  std::vector<LiveBuffers> sorted;
  for (const auto& [key, entry] : live) sorted.push_back(entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LiveBuffers& a, const LiveBuffers& b) { return a.bytes > b.bytes; });
  return sorted;
}

void fill_memory(StageTimeline& stage, const MemoryCourse& course, const StageProgram& program) {
  stage.memory = samples_of(course);
  stage.peak_at = Seconds(course.peak_at);
  stage.at_peak = live_of(course, program);
}

/// Communication on streams of its own and, at the granularity of layers, what runs within them.
std::vector<AxisTime> all_axes(const StageTimeline& stage, const StepParts& parts) {
  std::map<std::string, AxisTime> axes;
  for (const AxisTime& axis : times_by_axis(stage)) axes[axis.axis] = axis;
  const auto add = [&axes](const char* name, const WithinLayers& within) {
    if (within.alone <= Seconds(0)) return;
    AxisTime& axis = axes[name];
    axis.axis = name;
    axis.total += within.alone;
    axis.exposed += within.exposed;
  };
  add("tp", parts.tp);
  add("cp", parts.cp);
  add("ep", parts.ep);
  std::vector<AxisTime> all;
  for (const auto& [name, axis] : axes) all.push_back(axis);
  return all;
}

/// Everything that is inverse to the step time.
void rescale(StepReport& report, Seconds step) {
  const double faster = report.step_time / step;
  for (double* rate : {&report.mfu, &report.mfu_non_causal, &report.hfu, &report.tokens_per_s,
                       &report.tokens_per_s_per_gpu}) {
    *rate *= faster;
  }
  report.dollars_per_1e9_tokens /= faster;
  report.joules_per_token /= faster;
  report.step_time = step;
}

/// \param length  of the timeline
StageRunTimes run_times_within(const Simulation& simulation, const Actor& actor, double length) {
  const WorkProgram& work = simulation.work.programs[actor.program];
  const std::size_t count = work.operations.size();
  return {&work,
          std::span(simulation.timeline.start).subspan(actor.base, count),
          std::span(simulation.timeline.end).subspan(actor.base, count),
          length,
          &simulation.work,
          &actor,
          simulation.met};
}

/// A plan's passes, and what the scales of a simulation have made of them.
class ScaledPasses {
 public:
  ScaledPasses(const Plan& plan, std::span<const PriceScale> scales) : layers_(layer_passes(plan)) {
    if (!scales.empty()) scaled_.emplace(ScaledTransfers{planned_.emplace(plan), scales});
  }
  ScaledPasses(const ScaledPasses&) = delete;
  ScaledPasses& operator=(const ScaledPasses&) = delete;
  const std::vector<LayerTime>& layers() const { return layers_; }
  const ScaledTransfers* scaled() const { return scaled_ ? &*scaled_ : nullptr; }

 private:
  std::vector<LayerTime> layers_;
  std::optional<LayerTransfers> planned_;
  std::optional<ScaledTransfers> scaled_;
};

}  // namespace

StageRunTimes run_times(const Simulation& simulation, std::size_t stage) {
  return run_times(simulation, simulation.actor_of(stage));
}

StageRunTimes run_times(const Simulation& simulation, const Actor& actor) {
  return run_times_within(simulation, actor, simulation.timeline.length());
}

std::vector<RecordedStep> recorded_ranks(const Simulation& simulation) {
  std::vector<RecordedStep> ranks;
  ranks.reserve(simulation.work.actors.size());
  const double length = simulation.timeline.length();
  for (const Actor& actor : simulation.work.actors) {
    ranks.push_back(recorded(run_times_within(simulation, actor, length)));
  }
  return ranks;
}

const StepTimeline& timeline_of(const StepReport& report) {
  static const StepTimeline kNone;
  return report.timeline ? *report.timeline : kNone;
}

Bytes outside_allocator(const StepReport& report, std::size_t stage) {
  const StageMemory& memory = report.stages[stage];
  const Ledger& ledger = memory[memory.peak_phase()];
  return ledger.total() - ledger.reserved();
}

std::vector<WithinPass> within_passes(const Plan& plan, const Simulation& simulation,
                                      const Actor& actor, std::span<const PriceScale> scales) {
  const ScaledPasses passes(plan, scales);
  return within_passes(run_times(simulation, actor), passes.layers(), passes.scaled());
}

void fill_report(StepReport& report, const Plan& plan, const Simulation& simulation,
                 std::span<const PriceScale> scales) {
  StepTimeline timeline;
  const std::vector<RecordedStep> ranks = recorded_ranks(simulation);
  std::vector<std::vector<LinkTime>> links = link_times(plan, simulation);
  for (std::size_t s = 0; s < simulation.program.stages.size(); ++s) {
    const auto actor =
        static_cast<std::size_t>(&simulation.actor_of(s) - simulation.work.actors.data());
    StageTimeline stage = stage_timeline(ranks[actor], timeline.operations);
    fill_memory(stage, simulation.memory[s], simulation.program.stages[s]);
    stage.links = std::move(links[s]);
    timeline.stages.push_back(std::move(stage));
  }
  const std::size_t slowest = busiest_of(timeline.stages);
  timeline.overlap = overlap_of(timeline.stages);
  timeline.critical_path = critical_path(ranks);

  report.plan_digest = simulation.program.plan_digest;
  const Seconds input = report.time.input_exposed;
  const ScaledPasses passes(plan, scales);
  const StepParts parts =
      step_parts(run_times(simulation, slowest), passes.layers(), passes.scaled());
  report.time = parts.time;
  report.time.input_exposed = input;
  rescale(report, Seconds(simulation.timeline.length()) + input);
  report.by_axis = all_axes(timeline.stages[slowest], parts);
  report.timeline = std::move(timeline);
}

}  // namespace shardwise::sim
