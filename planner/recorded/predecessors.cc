#include "planner/recorded/predecessors.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardwise {

Predecessors::Predecessors(const RecordedStep& step)
    : step_(step), before_(step.spans.size(), kNoOperation) {
  std::array<std::uint32_t, kStreams> last{};
  last.fill(kNoOperation);
  for (std::uint32_t op = 0; op < before_.size(); ++op) {
    const auto stream = static_cast<std::size_t>(step.program->operations[op].stream);
    before_[op] = std::exchange(last[stream], op);
  }
}

std::uint32_t Predecessors::later(std::uint32_t a, std::uint32_t b) const {
  if (a == kNoOperation || b == kNoOperation) return a == kNoOperation ? b : a;
  return step_.spans[b].end > step_.spans[a].end ? b : a;
}

std::uint32_t Predecessors::latest_before(std::uint32_t op) const {
  std::uint32_t latest = before_[op];
  for (const std::uint32_t wait : step_.program->of(step_.program->operations[op].waits)) {
    latest = later(latest, wait);
  }
  return step_.issued_after.empty() ? latest : later(latest, step_.issued_after[op]);
}

std::vector<std::uint32_t> Predecessors::all_before(std::uint32_t op) const {
  std::vector<std::uint32_t> found;
  const auto add = [&found](std::uint32_t each) {
    if (each != kNoOperation && std::ranges::find(found, each) == found.end()) {
      found.push_back(each);
    }
  };
  add(before_[op]);
  for (const std::uint32_t wait : step_.program->of(step_.program->operations[op].waits)) add(wait);
  if (!step_.issued_after.empty()) add(step_.issued_after[op]);
  return found;
}

std::uint32_t Predecessors::last() const {
  std::uint32_t last = kNoOperation;
  for (std::uint32_t op = 0; op < before_.size(); ++op) last = later(last, op);
  return last;
}

}  // namespace shardwise
