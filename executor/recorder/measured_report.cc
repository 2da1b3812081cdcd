#include "executor/recorder/measured_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "executor/recorder/measured_parts.h"
#include "planner/cost/estimate.h"

namespace shardwise::exec {
namespace {

/// The longest chain of operations that wait for one another, by the time they took.
Seconds critical_path(const StepRecord& record) {
  const StageProgram& program = record.program;
  std::vector<std::int64_t> chain(program.operations.size(), 0);
  std::array<std::int64_t, kStreams> last{};
  std::int64_t longest = 0;
  for (std::size_t op = 0; op < chain.size(); ++op) {
    const ProgramOp& each = program.operations[op];
    std::int64_t& before = last[static_cast<std::size_t>(each.stream)];
    std::int64_t begin = before;
    for (const std::uint32_t wait : program.of(each.waits)) begin = std::max(begin, chain[wait]);
    chain[op] = begin + record.spans[op].end - record.spans[op].begin;
    before = chain[op];
    longest = std::max(longest, chain[op]);
  }
  return seconds(longest);
}

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

StepTimeline timeline_of(const StepRecord& record) {
  StepTimeline timeline;
  StageTimeline stage;
  std::array<StreamTime, kStreams> streams;
  std::map<std::string, std::size_t> by_name;
  const std::vector<std::int64_t> exposed = exposed_ns(record);
  Seconds moved;
  Seconds shown;
  Seconds squares;
  for (std::size_t i = 0; i < record.program.operations.size(); ++i) {
    ProgramOp op = record.program.operations[i];
    const OpSpan& span = record.spans[i];
    Seconds time = seconds(span.end - span.met);
    // The squares of the gradient's norm are the optimizer's, as in a prediction.
    if (op.role == OpRole::optimizer) time += std::exchange(squares, Seconds(0));
    squares += seconds(span.ready - span.begin);
    StreamTime& stream = streams[static_cast<std::size_t>(op.stream)];
    ++stream.operations;
    stream.busy += time;
    stream.exposed += seconds(exposed[i]);
    if (op.stream != Stream::compute) {
      moved += time;
      shown += seconds(exposed[i]);
    }
    op.microbatch = -1;
    const std::string name = name_of(record.program, op);
    const auto [at, fresh] = by_name.try_emplace(name, timeline.operations.size());
    if (fresh) {
      OperationTime made;
      made.name = name;
      made.stage = record.program.stage;
      made.stream = name_of(op.stream);
      timeline.operations.push_back(made);
    }
    OperationTime& entry = timeline.operations[at->second];
    ++entry.count;
    entry.time += time;
    entry.exposed += seconds(exposed[i]);
  }
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (streams[s].operations == 0) continue;
    streams[s].stream = name_of(static_cast<Stream>(s));
    stage.streams.push_back(streams[s]);
  }
  stage.stage = record.program.stage;
  stage.computing = streams[0].busy;
  stage.idle = Seconds(record.seconds) - stage.computing;
  fill_memory(stage, record);
  timeline.critical_path = critical_path(record);
  timeline.overlap = moved > Seconds(0) ? 1 - shown / moved : 0;
  timeline.stages.push_back(std::move(stage));
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

}  // namespace

StepReport measured_report(const Plan& plan, const RankRecord& record) {
  StepReport report =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, Detail::numbers);
  const double faster = report.step_time.value() / record.steady.seconds;
  for (double* rate : {&report.mfu, &report.mfu_non_causal, &report.hfu, &report.tokens_per_s,
                       &report.tokens_per_s_per_gpu}) {
    *rate *= faster;
  }
  report.dollars_per_1e9_tokens /= faster;
  report.joules_per_token /= faster;
  report.origin = "measured";
  report.process_growth = Bytes(record.growth_bytes);
  report.plan_digest = digest(plan);
  report.step_time = Seconds(record.steady.seconds);
  report.time = measured_parts(record.steady);
  report.compute = {};
  report.assumptions.clear();
  report.stages = {memory_of(record)};
  report.verdict.point = report.stages.front().peak_total();
  report.verdict.upper = report.verdict.point;
  report.verdict.worst_phase = report.stages.front().peak_phase();
  report.stage_upper = {report.verdict.upper};
  report.timeline = timeline_of(record.steady);
  report.by_axis.clear();
  AxisTime dp{"dp", Seconds(0), Seconds(0)};
  for (const StreamTime& stream : report.timeline->stages.front().streams) {
    if (stream.stream == name_of(Stream::compute)) continue;
    dp.total += stream.busy;
    dp.exposed += stream.exposed;
  }
  if (dp.total > Seconds(0)) report.by_axis.push_back(dp);
  return report;
}

}  // namespace shardwise::exec
