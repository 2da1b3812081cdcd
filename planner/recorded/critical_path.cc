#include "planner/recorded/critical_path.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/recorded/predecessors.h"

namespace shardwise {
namespace {

/// An operation of a rank.
struct Place {
  std::size_t rank = 0;
  std::uint32_t op = kNoOperation;
};

class CriticalPath {
 public:
  explicit CriticalPath(std::span<const RecordedStep> ranks)
      : ranks_(ranks), predecessors_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<std::uint32_t>& numbers = ranks[rank].rendezvous;
      for (std::uint32_t op = 0; op < numbers.size(); ++op) {
        if (numbers[op] == kNoRendezvous) continue;
        if (numbers[op] >= latest_.size()) latest_.resize(numbers[op] + std::size_t{1});
        Place& latest = latest_[numbers[op]];
        if (latest.op == kNoOperation || is_ready_later({rank, op}, latest)) latest = {rank, op};
      }
    }
  }

  Seconds length() {
    double sum = 0;
    Place at = last();
    while (at.op != kNoOperation) {
      at = latest_participant(at);
      sum += ran(span(at));
      at.op = predecessors_of(at.rank).latest_before(at.op);
    }
    return Seconds(sum);
  }

 private:
  const RecordedSpan& span(const Place& at) const { return ranks_[at.rank].spans[at.op]; }
  bool is_ready_later(const Place& a, const Place& b) const {
    return span(a).ready > span(b).ready;
  }

  /// The operation that ended last, of the lowest rank that has one.
  Place last() const {
    Place last;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint32_t op = 0; op < ranks_[rank].spans.size(); ++op) {
        const Place each = {rank, op};
        if (last.op == kNoOperation || span(each).end > span(last).end) last = each;
      }
    }
    return last;
  }

  /// Of the participants of a rendezvous, the one that was ready last; `at` itself where it was as
  /// late, and where it has no rendezvous.
  Place latest_participant(const Place& at) const {
    const std::vector<std::uint32_t>& numbers = ranks_[at.rank].rendezvous;
    if (numbers.empty() || numbers[at.op] == kNoRendezvous) return at;
    const Place& latest = latest_[numbers[at.op]];
    return is_ready_later(latest, at) ? latest : at;
  }

  const Predecessors& predecessors_of(std::size_t rank) {
    std::optional<Predecessors>& made = predecessors_[rank];
    if (!made) made.emplace(ranks_[rank]);
    return *made;
  }

  std::span<const RecordedStep> ranks_;
  std::vector<Place> latest_;                              // by rendezvous: ready last
  std::vector<std::optional<Predecessors>> predecessors_;  // by rank, of those that the path visits
};

}  // namespace

Seconds critical_path(std::span<const RecordedStep> ranks) { return CriticalPath(ranks).length(); }

}  // namespace shardwise
