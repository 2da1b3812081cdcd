#include "planner/recorded/predecessors.h"

#include <array>
#include <utility>

namespace shardwise {

Predecessors::Predecessors(const RecordedStep& step)
    : step_(step), before_(step.spans.size(), kNone) {
  std::array<std::uint32_t, kStreams> last{};
  last.fill(kNone);
  for (std::uint32_t op = 0; op < before_.size(); ++op) {
    const auto stream = static_cast<std::size_t>(step.program->operations[op].stream);
    before_[op] = std::exchange(last[stream], op);
  }
}

std::uint32_t Predecessors::later(std::uint32_t a, std::uint32_t b) const {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  return step_.spans[b].end > step_.spans[a].end ? b : a;
}

std::uint32_t Predecessors::latest_before(std::uint32_t op) const {
  std::uint32_t latest = before_[op];
  for (const std::uint32_t wait : step_.program->of(step_.program->operations[op].waits)) {
    latest = later(latest, wait);
  }
  return latest;
}

std::uint32_t Predecessors::last() const {
  std::uint32_t last = kNone;
  for (std::uint32_t op = 0; op < before_.size(); ++op) last = later(last, op);
  return last;
}

Seconds critical_path(const RecordedStep& step) {
  const Predecessors predecessors(step);
  double sum = 0;
  std::uint32_t op = predecessors.last();
  while (op != Predecessors::kNone) {
    sum += ran(step.spans[op]);
    op = predecessors.latest_before(op);
  }
  return Seconds(sum);
}

}  // namespace shardwise
