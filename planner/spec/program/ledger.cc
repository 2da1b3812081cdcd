#include "planner/spec/program/ledger.h"

#include <algorithm>
#include <numeric>

namespace shardwise {

Bytes Ledger::total() const {
  return Bytes(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
}

Bytes Ledger::reserved() const {
  return total() - Bytes((*this)[MemoryCategory::communicator]) -
         Bytes((*this)[MemoryCategory::runtime_context]);
}

Bytes Ledger::allocated() const {
  return reserved() - Bytes((*this)[MemoryCategory::allocator_slack]);
}

Bytes StageMemory::peak_allocated() const {
  Bytes most;
  for (const Ledger& ledger : phases) most = std::max(most, ledger.allocated());
  return most;
}

Bytes StageMemory::peak_reserved() const {
  Bytes most;
  for (const Ledger& ledger : phases) most = std::max(most, ledger.reserved());
  return most;
}

Bytes StageMemory::peak_total() const {
  Bytes most;
  for (const Ledger& ledger : phases) most = std::max(most, ledger.total());
  return most;
}

MemoryPhase StageMemory::peak_phase() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < kMemoryPhases; ++i) {
    if (phases[i].total() > phases[best].total()) best = i;
  }
  return static_cast<MemoryPhase>(best);
}

}  // namespace shardwise
