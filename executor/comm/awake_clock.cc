#include "executor/comm/awake_clock.h"

#include <algorithm>
#include <mutex>

namespace shardwise::exec {
namespace {

/// One for all threads: each look of any of them shows that the process runs.
struct Shared {
  std::mutex mutex;
  AwakeTime time{std::chrono::steady_clock::now()};  // guarded by mutex
};
Shared& shared() {
  static Shared all;
  return all;
}

}  // namespace

AwakeTime::Duration AwakeTime::look(Steady now) {
  if (now - last_ > kMostGap) {
    pauses_.push_back({last_ + kMostGap, now});
    paused_ += now - last_ - kMostGap;
    if (pauses_.size() > kMostPauses) pauses_.pop_front();
  }
  last_ = std::max(last_, now);
  return last_ - begin_ - paused_;
}

AwakeTime::Duration AwakeTime::since(Steady since, Steady now) {
  look(now);
  Duration awake = std::max(now, since) - since;
  for (const Pause& each : pauses_) {
    if (each.end > since) awake -= each.end - std::max(each.begin, since);
  }
  return awake;
}

AwakeClock::time_point AwakeClock::now() {
  Shared& all = shared();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return time_point(all.time.look(std::chrono::steady_clock::now()));
}

AwakeClock::duration AwakeClock::since(AwakeTime::Steady moment) {
  Shared& all = shared();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.time.since(moment, std::chrono::steady_clock::now());
}

}  // namespace shardwise::exec
