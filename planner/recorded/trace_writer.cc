#include "planner/recorded/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "planner/spec/plan/group_axes.h"
#include "planner/spec/program/trace_lane.h"

namespace shardwise {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr double kMicroseconds = 1e6;

/// A moment in the nanoseconds that a trace has. Both ends of an event are rounded, and its
/// duration is between them: rounded by itself it could reach into the next event of its stream.
std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

/// Shorter than a trace can tell: no arrow can be bound to it.
bool is_moment(const RecordedSpan& span) {
  return nanoseconds(span.ready) == nanoseconds(span.end);
}

/// The last moment within a span: viewers bind an arrow to the event that encloses it, and at its
/// end an event is over.
std::int64_t last_within(const RecordedSpan& span) {
  return std::max(nanoseconds(span.ready), nanoseconds(span.end) - 1);
}

}  // namespace

TraceWriter::TraceWriter(std::string_view origin, std::string_view plan_digest,
                         Granularity granularity, TextSink sink, std::string_view note)
    : sink_(std::move(sink)) {
  text_.reserve(kPiece + 4096);
  fmt::format_to(std::back_inserter(text_),
                 R"({{"displayTimeUnit":"ms","otherData":{{"schema":"shardwise.trace/1",)"
                 R"("origin":"{}","plan_digest":"{}","granularity":"{}"{}}},"traceEvents":[)",
                 origin, plan_digest, granularity == Granularity::kernel ? "kernel" : "layer",
                 note.empty() ? "" : fmt::format(R"(,"note":"{}")", note));
}

template <class... Values>
void TraceWriter::event(const char* format, const Values&... values) {
  if (text_.size() > kPiece) {
    sink_(text_);
    text_.clear();
  }
  text_ += first_ ? "\n" : ",\n";
  first_ = false;
  fmt::format_to(std::back_inserter(text_), fmt::runtime(format), values...);
}

const std::vector<std::string>& TraceWriter::names_of(const StageProgram& program) {
  const auto [at, fresh] = names_.try_emplace(&program);
  if (fresh) {
    at->second.reserve(program.operations.size());
    for (const ProgramOp& op : program.operations) at->second.push_back(name_of(program, op));
  }
  return at->second;
}

void TraceWriter::rank(std::size_t pid, std::int64_t rank, const RecordedStep& step) {
  const StageProgram& program = *step.program;
  const std::vector<std::string>& names = names_of(program);
  event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}, stage {}"}}}})", pid,
        rank, program.stage);
  sort_index("process", pid, 0, static_cast<std::int64_t>(pid));
  std::array<bool, kStreams> runs{};
  for (const ProgramOp& op : program.operations) runs[static_cast<std::size_t>(op.stream)] = true;
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (!runs[s]) continue;
    const auto stream = static_cast<Stream>(s);
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", pid,
          trace_lane(stream), name_of(stream));
    sort_index("thread", pid, trace_lane(stream), static_cast<std::int64_t>(s));
  }
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const ProgramOp& op = program.operations[i];
    const RecordedSpan& span = step.spans[i];
    const std::int64_t from = nanoseconds(span.ready);
    const std::int64_t length = nanoseconds(span.end) - from;
    event(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03})",
          names[i], name_of(op.role), pid, trace_lane(op.stream), from / 1000, from % 1000,
          length / 1000, length % 1000);
    arguments(program, op, span);
    text_ += '}';
    if (is_moment(span)) continue;
    for (const std::uint32_t wait : program.of(op.waits)) {
      const ProgramOp& before = program.operations[wait];
      if (before.stream == op.stream || is_moment(step.spans[wait])) continue;
      arrow({pid, trace_lane(before.stream), last_within(step.spans[wait])},
            {pid, trace_lane(op.stream), from});
    }
  }
}

/// What a viewer shows of an operation: its layer and micro-batch, the bytes it moves, over which
/// ranks and how fast, and how long it waited.
void TraceWriter::arguments(const StageProgram& program, const ProgramOp& op,
                            const RecordedSpan& span) {
  std::string list;
  const auto add = [&list](std::string_view key, const auto& value) {
    fmt::format_to(std::back_inserter(list), "{}\"{}\":{}", list.empty() ? "" : ",", key, value);
  };
  if (op.layer >= 0) add("layer", op.layer);
  if (op.microbatch >= 0) add("microbatch", op.microbatch);
  const OpCost& cost = program.costs[static_cast<std::size_t>(op.cost)];
  double bytes = static_cast<double>(cost.host_bytes);
  for (const CollectiveWork& work : cost.collectives) {
    bytes += static_cast<double>(work.bytes) * work.times;
    add("axis", fmt::format("\"{}\"", axes_of(work.group)));
  }
  const double runs = span.end - span.met;
  if (bytes > 0) {
    add("bytes", fmt::format("{:.0f}", bytes));
    if (runs > 0) add("bandwidth_gb_per_s", fmt::format("{:.3f}", bytes / runs / 1e9));
  }
  const double waited = span.met - span.ready;
  if (waited > 0) add("waited_us", fmt::format("{:.3f}", waited * kMicroseconds));
  if (!list.empty()) fmt::format_to(std::back_inserter(text_), ",\"args\":{{{}}}", list);
}

/// Places a process or a stream of it where a reader of pipelines looks for it.
void TraceWriter::sort_index(const char* kind, std::size_t pid, int lane, std::int64_t index) {
  event(R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", kind,
        pid, lane, index);
}

void TraceWriter::arrow(const End& from, const End& to) {
  ++arrows_;
  event(R"({{"ph":"s","id":{},"name":"waits","cat":"waits","pid":{},"tid":{},"ts":{}.{:03}}})",
        arrows_, from.pid, from.lane, from.at / 1000, from.at % 1000);
  event(
      R"({{"ph":"f","bp":"e","id":{},"name":"waits","cat":"waits","pid":{},"tid":{},"ts":{}.{:03}}})",
      arrows_, to.pid, to.lane, to.at / 1000, to.at % 1000);
}

void TraceWriter::message(std::size_t sender, const RecordedSpan& sent, std::size_t receiver,
                          const RecordedSpan& received) {
  if (is_moment(sent) || is_moment(received)) return;
  arrow({sender, trace_lane(Stream::send), nanoseconds(sent.ready)},
        {receiver, trace_lane(Stream::receive), last_within(received)});
}

void TraceWriter::memory(std::size_t pid, double at, std::int64_t allocated,
                         std::int64_t reserved) {
  event(R"({{"ph":"C","name":"memory","pid":{},"ts":{:.3f},"args":{{"allocated_bytes":{},)"
        R"("reserved_bytes":{}}}}})",
        pid, at * kMicroseconds, allocated, reserved);
}

void TraceWriter::link(std::size_t pid, std::string_view tier, double at, double percent) {
  event(R"({{"ph":"C","name":"link {}","pid":{},"ts":{:.3f},"args":{{"percent":{:.1f}}}}})", tier,
        pid, at * kMicroseconds, percent);
}

void TraceWriter::finish() {
  text_ += "\n]}\n";
  sink_(text_);
  text_.clear();
}

}  // namespace shardwise
