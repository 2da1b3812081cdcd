#include "simulator/step_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "planner/cost/layer_time.h"
#include "planner/lowering/price.h"
#include "simulator/critical_path.h"
#include "simulator/link_times.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kMostSamples = 2000;

/// Axis by which reports file a stream, or nullptr for one that communicates nothing.
const char* axis_of(Stream stream) {
  switch (stream) {
    case Stream::copy:
    case Stream::all_gather:
    case Stream::reduce_scatter:
    case Stream::outer_reduce:
      return "dp";
    case Stream::tensor_parallel:
      return "tp";
    case Stream::context_parallel:
      return "cp";
    case Stream::expert_parallel:
      return "ep";
    case Stream::send:
    case Stream::receive:
      return "pp";
    case Stream::compute:
    case Stream::host_copy:
      break;
  }
  return nullptr;
}

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

/// One stage's rank; adds its operations by name to `operations`.
StageTimeline stage_timeline(const Simulation& simulation, std::size_t s,
                             std::span<const double> exposed,
                             std::vector<OperationTime>& operations) {
  const StageProgram& stage = simulation.program.stages[s];
  const StageRunTimes run = run_times(simulation, s);
  StageTimeline made;
  made.stage = stage.stage;
  std::array<StreamTime, kStreams> streams;
  std::map<std::string, std::size_t> by_name;
  for (std::uint32_t i = 0; i < stage.operations.size(); ++i) {
    ProgramOp op = stage.operations[i];
    const Seconds time(run.end[i] - active_start(run, i));
    StreamTime& stream = streams[static_cast<std::size_t>(op.stream)];
    ++stream.operations;
    stream.busy += time;
    stream.exposed += Seconds(exposed[i]);
    op.microbatch = -1;
    const auto [at, fresh] = by_name.try_emplace(name_of(stage, op), operations.size());
    if (fresh) {
      operations.push_back({at->first, stage.stage, std::string(name_of(op.stream)), 0, {}, {}});
    }
    OperationTime& entry = operations[at->second];
    ++entry.count;
    entry.time += time;
    entry.exposed += Seconds(exposed[i]);
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (streams[i].operations == 0) continue;
    streams[i].stream = name_of(static_cast<Stream>(i));
    made.streams.push_back(streams[i]);
  }
  made.computing = streams[0].busy;
  made.idle = std::max(Seconds(0), Seconds(run.length) - made.computing);
  const MemoryCourse& course = simulation.memory[s];
  made.memory = samples_of(course);
  made.peak_at = Seconds(course.peak_at);
  made.at_peak = live_of(course, stage);
  return made;
}

/// Communication on streams of its own and, at the granularity of layers, what runs within them.
void fill_axes(StepReport& report, const StageTimeline& stage, const StepParts& parts) {
  std::map<std::string_view, AxisTime> axes;
  const auto add = [&axes](const char* name, Seconds total, Seconds exposed) {
    if (total <= Seconds(0)) return;
    AxisTime& axis = axes[name];
    axis.axis = name;
    axis.total += total;
    axis.exposed += exposed;
  };
  add("tp", parts.tp.alone, parts.tp.exposed);
  add("cp", parts.cp.alone, parts.cp.exposed);
  add("ep", parts.ep.alone, parts.ep.exposed);
  for (const StreamTime& stream : stage.streams) {
    for (std::size_t i = 0; i < kStreams; ++i) {
      const char* name = axis_of(static_cast<Stream>(i));
      if (stream.stream != name_of(static_cast<Stream>(i)) || name == nullptr) continue;
      add(name, stream.busy, stream.exposed);
    }
  }
  report.by_axis.clear();
  for (const auto& [name, axis] : axes) report.by_axis.push_back(axis);
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

Seconds alone_on_path(const Simulation& simulation) {
  Seconds sum;
  for (const std::size_t number : critical_path(simulation.work, simulation.timeline)) {
    const auto after =
        std::upper_bound(simulation.work.actors.begin(), simulation.work.actors.end(), number,
                         [](std::size_t value, const Actor& actor) { return value < actor.base; });
    const WorkProgram& program = simulation.work.programs[(after - 1)->program];
    const ProgramOp& op = program.program->operations[number - (after - 1)->base];
    sum += Seconds(program.prices[static_cast<std::size_t>(op.cost)].seconds);
  }
  return sum;
}

}  // namespace

StageRunTimes run_times(const Simulation& simulation, std::size_t stage) {
  return run_times(simulation, simulation.actor_of(stage));
}

StageRunTimes run_times(const Simulation& simulation, const Actor& actor) {
  const WorkProgram& work = simulation.work.programs[actor.program];
  const std::size_t count = work.operations.size();
  return {&work,
          std::span(simulation.timeline.start).subspan(actor.base, count),
          std::span(simulation.timeline.end).subspan(actor.base, count),
          simulation.timeline.length(),
          &simulation.work,
          &actor,
          simulation.met};
}

Bytes outside_allocator(const StepReport& report, std::size_t stage) {
  const StageMemory& memory = report.stages[stage];
  const Ledger& ledger = memory[memory.peak_phase()];
  return ledger.total() - ledger.reserved();
}

void fill_report(StepReport& report, const Plan& plan, const Simulation& simulation) {
  StepTimeline timeline;
  std::size_t slowest = 0;
  Seconds communicated;
  Seconds exposed_sum;
  std::vector<std::vector<LinkTime>> links = link_times(plan, simulation);
  for (std::size_t s = 0; s < simulation.program.stages.size(); ++s) {
    const std::vector<double> exposed = exposed_times(run_times(simulation, s));
    timeline.stages.push_back(stage_timeline(simulation, s, exposed, timeline.operations));
    timeline.stages.back().links = std::move(links[s]);
    if (timeline.stages[s].computing > timeline.stages[slowest].computing) slowest = s;
    for (const StreamTime& stream : timeline.stages[s].streams) {
      if (stream.stream == name_of(Stream::compute)) continue;
      communicated += stream.busy;
      exposed_sum += stream.exposed;
    }
  }
  timeline.overlap = communicated > Seconds(0) ? 1 - exposed_sum / communicated : 0;
  timeline.critical_path = alone_on_path(simulation);

  report.plan_digest = simulation.program.plan_digest;
  const std::vector<LayerTime> layers = layer_passes(plan);
  const Seconds input = report.time.input_exposed;
  const StepParts parts = step_parts(run_times(simulation, slowest), layers);
  report.time = parts.time;
  report.time.input_exposed = input;
  rescale(report, Seconds(simulation.timeline.length()) + input);
  fill_axes(report, timeline.stages[slowest], parts);
  report.timeline = std::move(timeline);
}

}  // namespace shardwise::sim
