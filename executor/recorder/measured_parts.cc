#include "executor/recorder/measured_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/recorded/stage_timeline.h"

namespace shardwise::exec {
namespace {

std::vector<std::uint32_t> compute_operations(const StageProgram& program) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
    if (program.operations[op].stream == Stream::compute) found.push_back(op);
  }
  return found;
}

/// Follows what held operations up.
class Gaps {
 public:
  explicit Gaps(const StepRecord& record)
      : record_(record), before_(record.spans.size(), kNothing) {
    std::array<std::uint32_t, kStreams> last{};
    last.fill(kNothing);
    for (std::uint32_t op = 0; op < record.spans.size(); ++op) {
      const auto stream = static_cast<std::size_t>(record.program.operations[op].stream);
      before_[op] = std::exchange(last[stream], op);
    }
  }

  /// Why `op` did not run between `from` and `to`.
  void explain(std::uint32_t op, std::int64_t from, std::int64_t to, TimeParts& parts) const {
    while (to > from) {
      const std::uint32_t cause = latest_before(op);
      if (cause == kNothing) break;
      const OpSpan& span = record_.spans[cause];
      const auto until = [&](std::int64_t moment, Seconds TimeParts::*part) {
        const std::int64_t at = std::clamp(moment, from, to);
        parts.*part += seconds(to - at);
        to = at;
      };
      until(span.met, &TimeParts::dp_exposed);  // and what threads take to wake one another
      until(span.ready, &TimeParts::straggler);
      until(span.begin, &TimeParts::optimizer);
      op = cause;
    }
    parts.dp_exposed += seconds(to - from);
  }

  /// The operation that ended last.
  std::uint32_t last() const {
    const auto last = std::ranges::max_element(record_.spans, {}, &OpSpan::end);
    return static_cast<std::uint32_t>(last - record_.spans.begin());
  }

 private:
  static constexpr std::uint32_t kNothing = UINT32_MAX;

  /// Of the operation before on its stream and those that it waited for, what ended last.
  std::uint32_t latest_before(std::uint32_t op) const {
    std::uint32_t latest = before_[op];
    for (const std::uint32_t wait : record_.program.of(record_.program.operations[op].waits)) {
      if (latest == kNothing || record_.spans[wait].end > record_.spans[latest].end) latest = wait;
    }
    return latest;
  }

  const StepRecord& record_;
  std::vector<std::uint32_t> before_;  // on the same stream
};

}  // namespace

TimeParts measured_parts(const StepRecord& record) {
  TimeParts parts;
  const Gaps gaps(record);
  const std::int64_t begin = begin_of(record);
  std::int64_t free_at = begin;
  for (const std::uint32_t op : compute_operations(record.program)) {
    const OpSpan& span = record.spans[op];
    gaps.explain(op, free_at, span.begin, parts);
    parts.*part_of(record.program.operations[op].role) += seconds(span.end - span.begin);
    free_at = span.end;
  }
  const std::uint32_t last = gaps.last();
  const OpSpan& span = record.spans[last];
  if (span.end > free_at) {
    const std::int64_t met = std::max(span.met, free_at);
    const std::int64_t from = std::max(span.begin, free_at);
    parts.dp_exposed += seconds(span.end - met);
    parts.straggler += seconds(met - from);
    gaps.explain(last, free_at, from, parts);
  }
  parts.input_exposed = Seconds(record.seconds) - seconds(std::max(span.end, free_at) - begin);
  return parts;
}

}  // namespace shardwise::exec
