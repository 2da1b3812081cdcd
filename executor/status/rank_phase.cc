#include "executor/status/rank_phase.h"

#include <chrono>

namespace shardwise::exec {
namespace {

std::int64_t steady_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

RankPhase::RankPhase(AbortSignal& abort, int rank, Phase phase, std::int64_t steps)
    : steps_(steps), phase_(phase), since_(steady_ns()) {
  watched_ = abort.watch({rank, [] { return INT64_MAX; }, [] { return std::string(); },
                          [this](RankStatus& status) { tell(status); }});
}

void RankPhase::begin(Phase phase) {
  phase_ = phase;
  since_ = steady_ns();
}

void RankPhase::begin_step(std::int64_t step) {
  step_ = step + 1;
  begin(Phase::training);
}

void RankPhase::tell(RankStatus& status) const {
  status.phase = phase_;
  status.step = step_;
  status.steps = steps_;
  status.since_s = static_cast<double>(steady_ns() - since_) * 1e-9;
}

RankPhases phases_of_ranks(AbortSignal& abort, std::int64_t ranks, Phase phase,
                           std::int64_t steps) {
  RankPhases phases;
  for (int rank = 0; rank < ranks; ++rank) {
    phases.push_back(std::make_unique<RankPhase>(abort, rank, phase, steps));
  }
  return phases;
}

}  // namespace shardwise::exec
