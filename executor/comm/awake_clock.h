#pragma once

#include <chrono>
#include <deque>

namespace shardwise::exec {

/// Counts the time in which a process could run. A process that is stopped, or whose machine is
/// paused, looks at no clock meanwhile; one that waits does so every 100 ms. So of a longer gap
/// between two looks only the begin counts: a pause is not waiting for another rank.
class AwakeTime {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  /// Longest gap between two looks. More than a waiting thread needs to have a busy processor.
  static constexpr std::chrono::milliseconds kMostGap{250};

  explicit AwakeTime(Steady begin) : begin_(begin), last_(begin) {}
  /// Time awake from the begin to now.
  Duration look(Steady now);
  /// Time awake from `since` to now.
  Duration since(Steady since, Steady now);

 private:
  struct Pause {
    Steady begin;
    Steady end;
  };
  static constexpr std::size_t kMostPauses = 4096;  // a longer past is looked at by nobody

  Steady begin_;
  Steady last_;
  Duration paused_{0};
  std::deque<Pause> pauses_;
};

/// The time awake of this process, which all of its waits are measured with.
struct AwakeClock {
  // NOLINTBEGIN(readability-identifier-naming): names that std::chrono asks a clock for
  using duration = AwakeTime::Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<AwakeClock>;
  static constexpr bool is_steady = true;
  // NOLINTEND(readability-identifier-naming)

  static time_point now();
  /// Time awake since a moment of the steady clock.
  static duration since(AwakeTime::Steady moment);
};

}  // namespace shardwise::exec
