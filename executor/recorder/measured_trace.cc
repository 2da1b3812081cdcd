#include "executor/recorder/measured_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "planner/spec/trace_lane.h"

namespace shardwise::exec {
namespace {

constexpr double kMicrosecond = 1e-3;  // in nanoseconds of a span

class Writer {
 public:
  explicit Writer(std::int64_t begin) : begin_(begin) {}

  void rank(const RankRecord& rank) {
    const StepRecord& step = rank.steady;
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}, stage {}"}}}})",
          rank.rank, rank.rank, step.program.stage);
    std::array<bool, kStreams> named{};
    for (std::size_t op = 0; op < step.spans.size(); ++op) {
      const ProgramOp& each = step.program.operations[op];
      const auto stream = static_cast<std::size_t>(each.stream);
      if (!named[stream]) {
        event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
              rank.rank, trace_lane(each.stream), name_of(each.stream));
      }
      named[stream] = true;
      const OpSpan& span = step.spans[op];
      // From being ready until the last of its group was.
      const std::string waiting =
          span.met > span.ready
              ? fmt::format(R"(,"args":{{"waited_us":{:.3f}}})", at(span.met) - at(span.ready))
              : "";
      event(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}{}}})",
            name_of(step.program, each), name_of(each.role), rank.rank, trace_lane(each.stream),
            at(span.ready), at(span.end) - at(span.ready), waiting);
      for (const std::uint32_t wait : step.program.of(each.waits)) {
        const ProgramOp& before = step.program.operations[wait];
        if (before.stream == each.stream) continue;
        ++arrows_;
        constexpr const char* kArrow =
            R"({{"ph":"{}",{}"id":{},"name":"waits","cat":"waits","pid":{},"tid":{},"ts":{:.3f}}})";
        const OpSpan& waited = step.spans[wait];
        event(kArrow, "s", "", arrows_, rank.rank, trace_lane(before.stream),
              at(std::max(waited.begin, waited.end - 1)));
        event(kArrow, "f", R"("bp":"e",)", arrows_, rank.rank, trace_lane(each.stream),
              at(span.begin));
      }
    }
    memory(rank);
  }

  const std::string& text() const { return text_; }

 private:
  double at(std::int64_t ns) const { return static_cast<double>(ns - begin_) * kMicrosecond; }

  template <class... Values>
  void event(const char* format, const Values&... values) {
    text_ += text_.empty() ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text_), fmt::runtime(format), values...);
  }

  void memory(const RankRecord& rank) {
    std::int64_t now = 0;
    for (const MemoryItem& item : rank.steady.items) {
      if (item.from_start()) now += item.life.bytes;
    }
    for (const MemoryChange& change : memory_changes(rank.steady)) {
      now += change.bytes;
      event(R"({{"ph":"C","name":"memory","pid":{},"ts":{:.3f},"args":{{"allocated_bytes":{},)"
            R"("reserved_bytes":{}}}}})",
            rank.rank, at(change.at), now, rank.arena_bytes);
    }
  }

  std::int64_t begin_;
  std::string text_;
  std::int64_t arrows_ = 0;
};

}  // namespace

std::string measured_trace(const Plan& plan, const std::vector<RankRecord>& ranks) {
  std::int64_t begin = INT64_MAX;
  for (const RankRecord& rank : ranks) {
    for (const OpSpan& span : rank.steady.spans) begin = std::min(begin, span.begin);
  }
  Writer writer(begin);
  for (const RankRecord& rank : ranks) writer.rank(rank);
  return fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"schema":"shardwise.trace/1","origin":"measured",)"
      R"("plan_digest":"{}"}},"traceEvents":[{})"
      "\n]}}\n",
      digest(plan), writer.text());
}

}  // namespace shardwise::exec
