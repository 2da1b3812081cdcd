#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace shardwise::exec {

/// Thrown where a rank waits for others once the run has failed somewhere: the rank that failed
/// says why, the others only stop.
class Aborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rank as those see it who look for what hangs. Both are called from other threads.
struct Watched {
  int rank = 0;
  /// When one of its operations last began or ended, nanoseconds of the steady clock; now, when it
  /// runs none.
  std::function<std::int64_t()> since;
  /// What each of its streams does and did last, a line each.
  std::function<std::string()> describe;
};

/// Whether a run has failed, and what wakes those who wait. One for all ranks of a process.
class AbortSignal {
 public:
  /// The first call decides the message; later ones are what the first one caused.
  void raise(const std::string& message);
  /// The same for a run that hangs: the message goes on with what each watched rank does,
  /// by rank.
  void raise_hung(const std::string& message);
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  /// Whether it has failed as a rank hangs: others may still want to say what they do.
  bool hung() const { return hung_.load(std::memory_order_acquire); }
  /// What went wrong first; empty when nothing did.
  std::string message() const;
  /// \throws Aborted when raised
  void check() const;

  /// Has `wake` called when the run fails, from the thread that raises, for as long as the result
  /// lives. `wake` may not call back.
  [[nodiscard]] std::shared_ptr<void> on_raise(std::function<void()> wake);
  /// Has a rank watched for as long as the result lives. Its functions may not call back.
  [[nodiscard]] std::shared_ptr<void> watch(Watched rank);
  /// The watched rank whose operations have begun and ended nothing for longest, and since when;
  /// rank -1 when none is watched.
  std::pair<int, std::int64_t> stillest() const;

 private:
  void raise_locked(const std::string& message);

  std::atomic<bool> raised_{false};
  std::atomic<bool> hung_{false};
  mutable std::mutex mutex_;
  std::string message_;                                       // guarded by mutex_
  std::map<std::uint64_t, std::function<void()>> wakes_;      // guarded by mutex_
  std::map<std::pair<int, std::uint64_t>, Watched> watched_;  // by rank; guarded by mutex_
  std::uint64_t next_ = 0;                                    // guarded by mutex_
};

}  // namespace shardwise::exec
