#include "simulator/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/trace_lane.h"
#include "simulator/stage_summary.h"
#include "simulator/step_report.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr double kMicroseconds = 1e6;

/// A moment in the nanoseconds that a trace has. Both ends of an event are rounded, and its
/// duration is between them: rounded by itself it could reach into the next event of its stream.
std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

/// Shorter than a trace can tell: no arrow can be bound to it.
bool is_moment(double start, double end) { return nanoseconds(start) == nanoseconds(end); }

/// The last moment within a span: viewers bind an arrow to the event that encloses it, and at its
/// end an event is over.
std::int64_t last_within(double start, double end) {
  return std::max(nanoseconds(start), nanoseconds(end) - 1);
}

/// The mesh axis of a group, as layouts name it.
std::string_view axis_of(GroupKind group) {
  switch (group) {
    case GroupKind::tp:
      return "tp";
    case GroupKind::cp:
      return "cp";
    case GroupKind::ep:
      return "ep";
    case GroupKind::etp:
      return "etp";
    case GroupKind::pp:
      return "pp";
    case GroupKind::dp_shard:
      return "dp_shard";
    case GroupKind::dp_replicate:
      return "dp_replicate";
    case GroupKind::dp_shard_cp:
      return "dp_shard x cp";
    case GroupKind::dp_cp:
      return "dp x cp";
    case GroupKind::stage:
      return "stage";
    case GroupKind::edp:
      return "edp";
    case GroupKind::edp_shard:
      return "edp_shard";
    case GroupKind::reshard:
      return "reshard";
    case GroupKind::world:
      return "world";
  }
  return "";
}

/// Moves `share` of a tier's links at one moment.
struct LinkChange {
  double at = 0;
  double share = 0;
};

/// One rank's events. Names are written once for each operation of a stage and used again for the
/// other ranks of it.
class TraceWriter {
 public:
  TraceWriter(const Plan& plan, const Simulation& simulation, const TextSink& sink)
      : plan_(plan),
        simulation_(simulation),
        sink_(sink),
        names_(simulation.program.stages.size()) {
    text_.reserve(kPiece + 4096);
  }

  void write(std::size_t most_ranks) {
    fmt::format_to(out(),
                   "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"schema\":\"shardwise.trace/1\","
                   "\"origin\":\"{}\",\"plan_digest\":\"{}\",\"granularity\":\"{}\"}},"
                   "\"traceEvents\":[",
                   simulation_.report.origin, simulation_.report.plan_digest,
                   simulation_.program.granularity == Granularity::kernel ? "kernel" : "layer");
    const std::size_t ranks = std::min(most_ranks, simulation_.work.actors.size());
    for (std::size_t a = 0; a < ranks; ++a) rank(simulation_.work.actors[a], a);
    messages(ranks);
    text_ += "\n]}\n";
    sink_(text_);
  }

 private:
  std::back_insert_iterator<std::string> out() { return std::back_inserter(text_); }
  void begin_event() {
    if (text_.size() > kPiece) {
      sink_(text_);
      text_.clear();
    }
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  const std::vector<std::string>& names_of(std::uint32_t program) {
    std::vector<std::string>& names = names_[program];
    const StageProgram& stage = simulation_.program.stages[program];
    if (names.size() != stage.operations.size()) {
      names.reserve(stage.operations.size());
      for (const ProgramOp& op : stage.operations) names.push_back(name_of(stage, op));
    }
    return names;
  }

  void rank(const Actor& actor, std::size_t pid) {
    const WorkProgram& work = simulation_.work.programs[actor.program];
    const StageProgram& stage = *work.program;
    const std::vector<std::string>& names = names_of(actor.program);
    begin_event();
    fmt::format_to(out(),
                   "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"rank "
                   "{}, stage {}\"}}}}",
                   pid, actor.rank, stage.stage);
    sort_index("process", pid, 0, static_cast<std::int64_t>(pid));
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (work.stream_begin[s] == work.stream_begin[s + 1]) continue;
      begin_event();
      fmt::format_to(out(),
                     "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{"
                     "\"name\":\"{}\"}}}}",
                     pid, trace_lane(static_cast<Stream>(s)), name_of(static_cast<Stream>(s)));
      sort_index("thread", pid, trace_lane(static_cast<Stream>(s)), static_cast<std::int64_t>(s));
    }
    const double* start = simulation_.timeline.start.data() + actor.base;
    const double* end = simulation_.timeline.end.data() + actor.base;
    const StageRunTimes run = run_times(simulation_, actor);
    for (std::uint32_t i = 0; i < stage.operations.size(); ++i) {
      const ProgramOp& op = stage.operations[i];
      const std::int64_t from = nanoseconds(start[i]);
      const std::int64_t length = nanoseconds(end[i]) - from;
      begin_event();
      fmt::format_to(out(),
                     "{{\"ph\":\"X\",\"name\":\"{}\",\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":"
                     "{}.{:03},\"dur\":{}.{:03}",
                     names[i], name_of(op.role), pid, trace_lane(op.stream), from / 1000,
                     from % 1000, length / 1000, length % 1000);
      const double begun = active_start(run, i);
      arguments(stage, op, begun - start[i], end[i] - begun);
      text_ += '}';
      for (const std::uint32_t wait : stage.of(op.waits)) {
        const ProgramOp& before = stage.operations[wait];
        if (before.stream == op.stream) continue;
        if (is_moment(start[wait], end[wait]) || is_moment(start[i], end[i])) continue;
        arrow(pid, trace_lane(before.stream), last_within(start[wait], end[wait]), pid,
              trace_lane(op.stream), nanoseconds(start[i]));
      }
    }
    memory(actor, pid);
    links(actor, pid);
  }

  /// What a viewer shows of an operation: its layer and micro-batch, the bytes it moves, over which
  /// ranks and how fast, and how long it waited.
  void arguments(const StageProgram& stage, const ProgramOp& op, double waited, double runs) {
    std::string list;
    const auto add = [&list](std::string_view key, const auto& value) {
      fmt::format_to(std::back_inserter(list), "{}\"{}\":{}", list.empty() ? "" : ",", key, value);
    };
    if (op.layer >= 0) add("layer", op.layer);
    if (op.microbatch >= 0) add("microbatch", op.microbatch);
    const OpCost& cost = stage.costs[static_cast<std::size_t>(op.cost)];
    double bytes = static_cast<double>(cost.host_bytes);
    for (const CollectiveWork& work : cost.collectives) {
      bytes += static_cast<double>(work.bytes) * work.times;
      add("axis", fmt::format("\"{}\"", axis_of(work.group)));
    }
    if (bytes > 0) {
      add("bytes", fmt::format("{:.0f}", bytes));
      if (runs > 0) add("bandwidth_gb_per_s", fmt::format("{:.3f}", bytes / runs / 1e9));
    }
    if (waited > 0) add("waited_us", fmt::format("{:.3f}", waited * kMicroseconds));
    if (!list.empty()) fmt::format_to(out(), ",\"args\":{{{}}}", list);
  }

  /// Places a process or a stream of it where a reader of pipelines looks for it.
  void sort_index(const char* kind, std::size_t pid, int tid, std::int64_t index) {
    begin_event();
    fmt::format_to(out(),
                   "{{\"ph\":\"M\",\"name\":\"{}_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{"
                   "\"sort_index\":{}}}}}",
                   kind, pid, tid, index);
  }

  void arrow(std::size_t from_pid, int from_tid, std::int64_t from, std::size_t to_pid, int to_tid,
             std::int64_t to) {
    ++arrows_;
    begin_event();
    fmt::format_to(
        out(),
        "{{\"ph\":\"s\",\"id\":{},\"name\":\"waits\",\"cat\":\"waits\",\"pid\":{},\"tid\":"
        "{},\"ts\":{}.{:03}}}",
        arrows_, from_pid, from_tid, from / 1000, from % 1000);
    begin_event();
    fmt::format_to(out(),
                   "{{\"ph\":\"f\",\"bp\":\"e\",\"id\":{},\"name\":\"waits\",\"cat\":\"waits\","
                   "\"pid\":{},\"tid\":{},\"ts\":{}.{:03}}}",
                   arrows_, to_pid, to_tid, to / 1000, to % 1000);
  }

  /// From each send to its receive, between representatives.
  void messages(std::size_t ranks) {
    if (ranks != simulation_.program.stages.size()) return;
    struct End {
      std::size_t pid = 0;
      std::int64_t at = -1;
    };
    std::vector<std::array<End, 2>> ends;
    for (std::size_t a = 0; a < ranks; ++a) {
      const Actor& actor = simulation_.work.actors[a];
      const StageProgram& stage = simulation_.work.program_of(actor);
      for (std::size_t i = 0; i < stage.operations.size(); ++i) {
        const ProgramOp& op = stage.operations[i];
        if (op.message < 0) continue;
        const auto number = static_cast<std::size_t>(op.message);
        if (number >= ends.size()) ends.resize(number + 1);
        const bool receives = op.stream == Stream::receive;
        const double begin = simulation_.timeline.start[actor.base + i];
        const double end = simulation_.timeline.end[actor.base + i];
        if (is_moment(begin, end)) continue;
        const std::int64_t at = receives ? last_within(begin, end) : nanoseconds(begin);
        ends[number][receives ? 1 : 0] = {a, at};
      }
    }
    for (const auto& [sent, received] : ends) {
      if (sent.at < 0 || received.at < 0) continue;
      arrow(sent.pid, trace_lane(Stream::send), sent.at, received.pid, trace_lane(Stream::receive),
            received.at);
    }
  }

  void memory(const Actor& actor, std::size_t pid) {
    for (const MemoryMoment& moment : simulation_.memory[actor.program].moments) {
      begin_event();
      fmt::format_to(out(),
                     "{{\"ph\":\"C\",\"name\":\"memory\",\"pid\":{},\"ts\":{:.3f},\"args\":{{"
                     "\"allocated_bytes\":{},\"reserved_bytes\":{}}}}}",
                     pid, moment.at * kMicroseconds, moment.allocated, moment.reserved);
    }
  }

  /// Share of each tier's links that the running transfers would fill, sending.
  void links(const Actor& actor, std::size_t pid) {
    const WorkProgram& work = simulation_.work.programs[actor.program];
    const std::size_t count = work.operations.size();
    const StageRunTimes run = run_times(simulation_, actor);
    for (std::size_t tier = 0; tier < plan_.cluster.tiers.size() && tier < kMaxTiers; ++tier) {
      std::vector<LinkChange> changes;
      for (std::uint32_t i = 0; i < count; ++i) {
        const ProgramOp& op = work.program->operations[i];
        const double share = work.prices[static_cast<std::size_t>(op.cost)].link_share[tier];
        if (share == 0 || op.stream == Stream::receive) continue;
        changes.push_back({active_start(run, i), share});
        changes.push_back({run.end[i], -share});
      }
      std::stable_sort(changes.begin(), changes.end(),
                       [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
      double sum = 0;
      for (std::size_t c = 0; c < changes.size(); ++c) {
        sum += changes[c].share;
        if (c + 1 < changes.size() && changes[c + 1].at == changes[c].at) continue;
        begin_event();
        fmt::format_to(out(),
                       "{{\"ph\":\"C\",\"name\":\"link {}\",\"pid\":{},\"ts\":{:.3f},\"args\":{{"
                       "\"percent\":{:.1f}}}}}",
                       plan_.cluster.tiers[tier].name, pid, changes[c].at * kMicroseconds,
                       100 * std::clamp(sum, 0.0, 1.0));
      }
    }
  }

  const Plan& plan_;
  const Simulation& simulation_;
  const TextSink& sink_;
  std::vector<std::vector<std::string>> names_;
  std::string text_;
  bool first_ = true;
  std::uint64_t arrows_ = 0;
};

}  // namespace

void write_trace(const Plan& plan, const Simulation& simulation, std::size_t most_ranks,
                 const TextSink& sink) {
  TraceWriter(plan, simulation, sink).write(most_ranks);
}

}  // namespace shardwise::sim
