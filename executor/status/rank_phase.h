#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/status/rank_status.h"

namespace shardwise::exec {

/// Says what a rank is busy with, to others that look. Never waits for them.
class RankPhase {
 public:
  /// \param steps  of the run; 0: it has none
  RankPhase(AbortSignal& abort, int rank, Phase phase, std::int64_t steps = 0);

  void begin(Phase phase);
  /// \param step  that is under way from now on, counted from 0
  void begin_step(std::int64_t step);

 private:
  void tell(RankStatus& status) const;

  std::int64_t steps_;
  std::atomic<Phase> phase_;
  std::atomic<std::int64_t> step_{0};   // counted from 1
  std::atomic<std::int64_t> since_{0};  // nanoseconds of the steady clock
  std::shared_ptr<void> watched_;
};

/// Phases of the ranks of a process, by rank: all in one phase until each begins another.
using RankPhases = std::vector<std::unique_ptr<RankPhase>>;
RankPhases phases_of_ranks(AbortSignal& abort, std::int64_t ranks, Phase phase, std::int64_t steps);

}  // namespace shardwise::exec
