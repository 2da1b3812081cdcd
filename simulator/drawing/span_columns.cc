#include "simulator/drawing/span_columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "planner/recorded/stage_timeline.h"

namespace shardwise::sim {
namespace {

/// A stream begins or stops to move something that is exposed.
struct Turn {
  double at = 0;
  std::int32_t by = 0;  // +1 or -1
  std::uint8_t stream = 0;
};

/// The parts of a stream's spans beside which nothing is computed.
void add_turns(const SpanColumns& moving, const SpanColumns* computing, std::vector<Turn>& turns) {
  const auto stream = static_cast<std::uint8_t>(moving.stream);
  const std::size_t kernels = computing == nullptr ? 0 : computing->size();
  std::size_t next = 0;  // kernel that has not ended
  for (std::size_t i = 0; i < moving.size(); ++i) {
    double from = moving.active_start[i];
    const double to = moving.end[i];
    while (next < kernels && computing->end[next] <= from) ++next;
    for (std::size_t k = next; from < to; ++k) {
      const double until = k < kernels ? std::min(to, computing->start[k]) : to;
      if (until > from) {
        turns.push_back({from, 1, stream});
        turns.push_back({until, -1, stream});
      }
      if (k >= kernels) break;
      from = std::max(from, computing->end[k]);
    }
  }
}

}  // namespace

void SpanColumns::reserve(std::size_t count) {
  start.reserve(count);
  active_start.reserve(count);
  end.reserve(count);
  exposed.reserve(count);
  kind.reserve(count);
  chunk.reserve(count);
  microbatch.reserve(count);
  layer.reserve(count);
  operation.reserve(count);
}

void SpanColumns::push_back(const RecordedSpan& span, double exposed_seconds, const ProgramOp& op,
                            std::uint32_t index) {
  start.push_back(span.begin);
  active_start.push_back(span.met);
  end.push_back(span.end);
  exposed.push_back(static_cast<float>(exposed_seconds));
  kind.push_back(paint_of(op));
  chunk.push_back(op.chunk);
  microbatch.push_back(op.microbatch);
  layer.push_back(op.layer);
  operation.push_back(index);
}

const SpanColumns* RankSpans::computing() const {
  const bool has = !streams.empty() && streams.front().stream == Stream::compute;
  return has ? &streams.front() : nullptr;
}

RankSpans rank_spans(const RecordedStep& step, std::int64_t rank) {
  const StageProgram& program = *step.program;
  std::array<std::size_t, kStreams> counts{};
  for (const ProgramOp& op : program.operations) ++counts[static_cast<std::size_t>(op.stream)];
  std::array<SpanColumns, kStreams> streams;
  for (std::size_t s = 0; s < kStreams; ++s) {
    streams[s].stream = static_cast<Stream>(s);
    streams[s].reserve(counts[s]);
  }
  const std::vector<double> exposed = exposed_times(step);
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    const ProgramOp& op = program.operations[i];
    streams[static_cast<std::size_t>(op.stream)].push_back(step.spans[i], exposed[i], op, i);
  }
  RankSpans made{rank, static_cast<std::size_t>(program.stage), {}};
  for (SpanColumns& each : streams) {
    if (!each.empty()) made.streams.push_back(std::move(each));
  }
  return made;
}

int Exposed::count() const { return std::popcount(streams); }

std::vector<Exposed> exposed_stretches(const RankSpans& rank) {
  std::vector<Turn> turns;
  for (const SpanColumns& each : rank.streams) {
    if (each.stream != Stream::compute) add_turns(each, rank.computing(), turns);
  }
  std::ranges::sort(turns, {}, &Turn::at);
  std::vector<Exposed> found;
  std::array<std::int32_t, kStreams> moving{};
  std::uint16_t streams = 0;
  double since = 0;
  for (std::size_t i = 0; i < turns.size();) {
    const double at = turns[i].at;
    if (streams != 0) {
      const bool joins =
          !found.empty() && found.back().to == since && found.back().streams == streams;
      if (joins) {
        found.back().to = at;
      } else {
        found.push_back({since, at, streams});
      }
    }
    for (; i < turns.size() && turns[i].at == at; ++i) {
      const std::uint8_t stream = turns[i].stream;
      moving[stream] += turns[i].by;
      const auto bit = static_cast<std::uint16_t>(1U << stream);
      streams = static_cast<std::uint16_t>(moving[stream] > 0 ? streams | bit : streams & ~bit);
    }
    since = at;
  }
  return found;
}

std::vector<std::uint32_t> block_starts(const SpanColumns& spans) {
  std::vector<std::uint32_t> starts;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const bool joins = i > 0 && spans.kind[i] == spans.kind[i - 1] &&
                       spans.microbatch[i] == spans.microbatch[i - 1] &&
                       spans.chunk[i] == spans.chunk[i - 1] && spans.start[i] == spans.end[i - 1] &&
                       spans.active_start[i] == spans.start[i];
    if (!joins) starts.push_back(static_cast<std::uint32_t>(i));
  }
  return starts;
}

}  // namespace shardwise::sim
