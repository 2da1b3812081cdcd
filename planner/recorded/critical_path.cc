#include "planner/recorded/critical_path.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/recorded/predecessors.h"

namespace shardwise {
namespace {

class CriticalPath {
 public:
  explicit CriticalPath(std::span<const RecordedStep> ranks)
      : ranks_(ranks), predecessors_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<std::uint32_t>& numbers = ranks[rank].rendezvous;
      for (std::uint32_t op = 0; op < numbers.size(); ++op) {
        if (numbers[op] == kNoRendezvous) continue;
        if (numbers[op] >= latest_.size()) latest_.resize(numbers[op] + std::size_t{1});
        StepPlace& latest = latest_[numbers[op]];
        if (latest.op == kNoOperation || is_ready_later({rank, op}, latest)) latest = {rank, op};
      }
    }
  }

  /// The last operation first.
  std::vector<StepPlace> backwards() {
    std::vector<StepPlace> chain;
    StepPlace at = last();
    while (at.op != kNoOperation) {
      at = latest_participant(at);
      chain.push_back(at);
      at.op = predecessors_of(at.rank).latest_before(at.op);
    }
    return chain;
  }

  std::vector<StepPlace> before(const StepPlace& at) {
    std::vector<StepPlace> found;
    for (const std::uint32_t op : predecessors_of(at.rank).all_before(at.op)) {
      found.push_back({at.rank, op});
    }
    std::ranges::stable_sort(found, std::ranges::greater(),
                             [&](const StepPlace& each) { return span(each).end; });
    const StepPlace latest = latest_participant(at);
    if (latest != at) found.insert(found.begin(), latest);
    return found;
  }

 private:
  const RecordedSpan& span(const StepPlace& at) const { return ranks_[at.rank].spans[at.op]; }
  bool is_ready_later(const StepPlace& a, const StepPlace& b) const {
    return span(a).ready > span(b).ready;
  }

  /// The operation that ended last, of the lowest rank that has one.
  StepPlace last() const {
    StepPlace last;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint32_t op = 0; op < ranks_[rank].spans.size(); ++op) {
        const StepPlace each = {rank, op};
        if (last.op == kNoOperation || span(each).end > span(last).end) last = each;
      }
    }
    return last;
  }

  /// Of the participants of a rendezvous, the one that was ready last; `at` itself where it was as
  /// late, and where it has no rendezvous.
  StepPlace latest_participant(const StepPlace& at) const {
    const std::vector<std::uint32_t>& numbers = ranks_[at.rank].rendezvous;
    if (numbers.empty() || numbers[at.op] == kNoRendezvous) return at;
    const StepPlace& latest = latest_[numbers[at.op]];
    return is_ready_later(latest, at) ? latest : at;
  }

  const Predecessors& predecessors_of(std::size_t rank) {
    std::optional<Predecessors>& made = predecessors_[rank];
    if (!made) made.emplace(ranks_[rank]);
    return *made;
  }

  std::span<const RecordedStep> ranks_;
  std::vector<StepPlace> latest_;                          // by rendezvous: ready last
  std::vector<std::optional<Predecessors>> predecessors_;  // by rank, of those that the path visits
};

}  // namespace

std::vector<StepPlace> critical_chain(std::span<const RecordedStep> ranks) {
  std::vector<StepPlace> chain = CriticalPath(ranks).backwards();
  std::ranges::reverse(chain);
  return chain;
}

std::vector<StepPlace> waited_for(std::span<const RecordedStep> ranks, const StepPlace& at) {
  return CriticalPath(ranks).before(at);
}

Seconds critical_path(std::span<const RecordedStep> ranks) {
  double sum = 0;
  for (const StepPlace& at : CriticalPath(ranks).backwards()) {
    sum += ran(ranks[at.rank].spans[at.op]);
  }
  return Seconds(sum);
}

}  // namespace shardwise
