#include "executor/recorder/measured_report.h"

#include <algorithm>
#include <map>

#include "planner/cost/estimate.h"
#include "planner/recorded/predecessors.h"
#include "planner/recorded/stage_timeline.h"
#include "planner/recorded/step_parts.h"
#include "planner/spec/report_fields.h"

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

StepTimeline measured_timeline(const StepRecord& record) {
  StepTimeline timeline;
  const RecordedStep step = recorded(record, begin_of(record));
  timeline.stages = {stage_timeline(step, timeline.operations)};
  fill_memory(timeline.stages.front(), record);
  timeline.critical_path = critical_path(step);
  timeline.overlap = overlap_of(timeline.stages);
  return timeline;
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

}  // namespace

StepReport measured_report(const Plan& plan, const RankRecord& record) {
  StepReport report =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, Detail::numbers);
  const bool apart = record.unrecorded_s > 0;
  const double step = apart ? record.unrecorded_s : record.steady.seconds;
  const double faster = report.step_time.value() / step;
  for (double* rate : {&report.mfu, &report.mfu_non_causal, &report.hfu, &report.tokens_per_s,
                       &report.tokens_per_s_per_gpu}) {
    *rate *= faster;
  }
  report.dollars_per_1e9_tokens /= faster;
  report.joules_per_token /= faster;
  report.origin = "measured";
  report.process_growth = Bytes(record.growth_bytes);
  report.arena = Bytes(record.arena_bytes);
  report.device_used_at_start = Bytes(record.device.at_start);
  report.device_used = Bytes(record.device.at_end);
  report.plan_digest = digest(plan);
  report.step_time = Seconds(step);
  if (apart) report.recorded_step_time = Seconds(record.steady.seconds);
  StepFacts by_clock;
  report.time = step_parts(recorded(record.steady, begin_of(record.steady)), by_clock);
  scale(report.time, step / record.steady.seconds);
  report.compute = {};
  report.assumptions.clear();
  report.stages = {memory_of(record)};
  report.verdict.point = report.stages.front().peak_total();
  report.verdict.upper = report.verdict.point;
  report.verdict.worst_phase = report.stages.front().peak_phase();
  report.stage_upper = {report.verdict.upper};
  report.timeline = measured_timeline(record.steady);
  report.by_axis = times_by_axis(report.timeline->stages.front());
  return report;
}

}  // namespace shardwise::exec
