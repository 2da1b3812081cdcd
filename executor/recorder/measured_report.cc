#include "executor/recorder/measured_report.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "planner/estimate/estimate.h"
#include "planner/recorded/critical_path.h"
#include "planner/recorded/rendezvous.h"
#include "planner/recorded/stage_timeline.h"
#include "planner/recorded/step_parts.h"
#include "planner/spec/report/report_fields.h"

namespace shardwise::exec {
namespace {

void fill_memory(StageTimeline& stage, const StepRecord& record) {
  std::int64_t now = 0;
  for (const MemoryItem& item : record.items) {
    if (item.from_start()) now += item.life.bytes;
  }
  const std::int64_t begin = begin_of(record);
  const std::vector<MemoryChange> changes = memory_changes(record);
  std::int64_t most = 0;
  std::vector<bool> live(record.items.size(), false);
  std::vector<bool> at_peak = live;
  for (const MemoryChange& change : changes) {
    now += change.bytes;
    live[change.item] = change.bytes > 0;
    stage.memory.push_back({seconds(change.at - begin), Bytes(now), Bytes(now)});
    if (now <= most) continue;
    most = now;
    stage.peak_at = seconds(change.at - begin);
    at_peak = live;
  }
  std::map<MemoryCategory, LiveBuffers> by_category;
  for (std::size_t i = 0; i < record.items.size(); ++i) {
    const MemoryItem& item = record.items[i];
    if (!item.from_start() && !at_peak[i]) continue;
    LiveBuffers& entry = by_category[item.category];
    entry.category = item.category;
    ++entry.count;
    entry.bytes += Bytes(item.life.bytes);
  }
  for (const auto& entry : by_category) stage.at_peak.push_back(entry.second);
  std::ranges::stable_sort(stage.at_peak, std::ranges::greater{}, &LiveBuffers::bytes);
}

RecordedStep steady_step(const RankRecord& rank) {
  return recorded(rank.steady, begin_of(rank.steady));
}

using Ranks = std::vector<const RankRecord*>;

/// The rank whose compute stream is busiest.
const RankRecord& busiest_rank(const Ranks& ranks) {
  std::vector<StageTimeline> timelines;
  std::vector<OperationTime> unused;
  for (const RankRecord* rank : ranks) {
    timelines.push_back(stage_timeline(steady_step(*rank), unused));
  }
  return *ranks[busiest_of(timelines)];
}

/// The ranks of each stage that has some.
std::vector<Ranks> by_stage(std::span<const RankRecord> ranks) {
  std::map<std::int32_t, Ranks> stages;
  for (const RankRecord& rank : ranks) stages[rank.steady.program.stage].push_back(&rank);
  std::vector<Ranks> all;
  for (auto& stage : stages) all.push_back(std::move(stage.second));
  return all;
}

/// Of all ranks where all were recorded by one clock, else of `rank` alone.
Seconds measured_critical_path(const Plan& plan, std::span<const RankRecord> ranks,
                               const RankRecord& rank) {
  const bool all = std::ssize(ranks) == plan.layout.world() &&
                   std::ranges::all_of(ranks, [&rank](const RankRecord& each) {
                     return !each.clock.empty() && each.clock == rank.clock;
                   });
  if (!all) {
    const RecordedStep own = steady_step(rank);
    return critical_path(std::span(&own, 1));
  }
  std::int64_t begin = begin_of(rank.steady);
  for (const RankRecord& each : ranks) begin = std::min(begin, begin_of(each.steady));
  std::vector<RecordedStep> steps;
  for (const RankRecord& each : ranks) steps.push_back(recorded(each.steady, begin));
  number_rendezvous(plan.layout, steps);
  return critical_path(steps);
}

StageMemory memory_of(const RankRecord& record) {
  const MeasuredMemory first = measured_memory(record.first);
  const MeasuredMemory steady = measured_memory(record.steady);
  StageMemory memory;
  memory[MemoryPhase::after_init] = first.residents;
  memory[MemoryPhase::first_forward_backward] = first.passes;
  memory[MemoryPhase::first_optimizer_step] = first.optimizer;
  memory[MemoryPhase::steady_forward_backward] = steady.passes;
  memory[MemoryPhase::steady_optimizer_step] = steady.optimizer;
  return memory;
}

/// Parts of a recorded step as shares of one that was not.
void scale(TimeParts& parts, double factor) {
  for (const TimePart& part : kTimeParts) parts.*part.field = parts.*part.field * factor;
}

/// What the ranks held, and which of them held most in the steady step.
struct MostHeld {
  StageMemory memory;  // each phase is that of the rank that held most in it
  const RankRecord* steady = nullptr;
};
MostHeld most_held(const Ranks& ranks) {
  MostHeld most;
  Bytes steady;
  for (const RankRecord* rank : ranks) {
    const StageMemory held = memory_of(*rank);
    for (std::size_t phase = 0; phase < held.phases.size(); ++phase) {
      const bool more = held.phases[phase].total() > most.memory.phases[phase].total();
      if (more) most.memory.phases[phase] = held.phases[phase];
    }
    const Bytes peak = std::max(held[MemoryPhase::steady_forward_backward].total(),
                                held[MemoryPhase::steady_optimizer_step].total());
    if (most.steady != nullptr && peak <= steady) continue;
    most.steady = rank;
    steady = peak;
  }
  return most;
}

/// What each stage held and when its busiest rank ran what. \returns the stage that is busiest
std::size_t fill_stages(StepReport& report, const std::vector<Ranks>& stages) {
  report.stages.clear();
  report.stage_upper.clear();
  StepTimeline timeline;
  for (const Ranks& ranks : stages) {
    const MostHeld held = most_held(ranks);
    report.stages.push_back(held.memory);
    report.stage_upper.push_back(held.memory.peak_total());
    timeline.stages.push_back(
        stage_timeline(steady_step(busiest_rank(ranks)), timeline.operations));
    fill_memory(timeline.stages.back(), held.steady->steady);
  }
  const auto worst =
      std::ranges::max_element(report.stages, {}, &StageMemory::peak_total) - report.stages.begin();
  const StageMemory& fullest = report.stages[static_cast<std::size_t>(worst)];
  report.verdict.worst_stage = static_cast<std::int32_t>(worst);
  report.verdict.point = fullest.peak_total();
  report.verdict.upper = report.verdict.needed = report.verdict.point;
  report.verdict.worst_phase = fullest.peak_phase();
  timeline.overlap = overlap_of(timeline.stages);
  report.timeline = std::move(timeline);
  return busiest_of(report.timeline->stages);
}

}  // namespace

StepReport measured_report(const Plan& plan, std::span<const RankRecord> ranks) {
  const std::vector<Ranks> stages = by_stage(ranks);
  StepReport report =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, Detail::numbers);
  const std::size_t busiest = fill_stages(report, stages);
  const RankRecord& record = busiest_rank(stages[busiest]);
  const RecordedStep step = steady_step(record);
  const bool apart = record.unrecorded_s > 0;
  const double length = apart ? record.unrecorded_s : record.steady.seconds;
  const double faster = report.step_time.value() / length;
  for (double* rate : {&report.mfu, &report.mfu_non_causal, &report.hfu, &report.tokens_per_s,
                       &report.tokens_per_s_per_gpu}) {
    *rate *= faster;
  }
  report.dollars_per_1e9_tokens /= faster;
  report.joules_per_token /= faster;
  report.origin = "measured";
  report.measured_ranks = std::ssize(ranks);
  report.process_growth =
      Bytes(std::ranges::max_element(ranks, {}, &RankRecord::growth_bytes)->growth_bytes);
  report.arena = Bytes(std::ranges::max_element(ranks, {}, &RankRecord::arena_bytes)->arena_bytes);
  const auto used = [](const RankRecord& rank) { return rank.device.at_end; };
  const RankRecord& fullest = *std::ranges::max_element(ranks, {}, used);
  report.device_used_at_start = Bytes(fullest.device.at_start);
  report.device_used = Bytes(fullest.device.at_end);
  report.plan_digest = digest(plan);
  report.step_time = Seconds(length);
  if (apart) report.recorded_step_time = Seconds(record.steady.seconds);
  StepFacts by_clock;
  report.time = step_parts(step, by_clock);
  scale(report.time, length / record.steady.seconds);
  report.compute = {};
  report.assumptions.clear();
  report.timeline->critical_path = measured_critical_path(plan, ranks, record);
  report.by_axis = times_by_axis(report.timeline->stages[busiest]);
  for (AxisTime& axis : report.by_axis) {
    axis.total = axis.total * (length / record.steady.seconds);
    axis.exposed = axis.exposed * (length / record.steady.seconds);
  }
  return report;
}

}  // namespace shardwise::exec
