#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace shardwise::exec {

/// Thrown where a rank waits for others once the run has failed somewhere: the rank that failed
/// says why, the others only stop.
class Aborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whether a run has failed, and what wakes those who wait. One for all ranks of a process.
class AbortSignal {
 public:
  /// The first call decides the message; later ones are what the first one caused.
  void raise(const std::string& message);
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  /// What went wrong first; empty when nothing did.
  std::string message() const;
  /// \throws Aborted when raised
  void check() const;

  /// Has `wake` called when the run fails, from the thread that raises, for as long as the result
  /// lives. `wake` may not call back.
  [[nodiscard]] std::shared_ptr<void> on_raise(std::function<void()> wake);

 private:
  std::atomic<bool> raised_{false};
  mutable std::mutex mutex_;
  std::string message_;                                   // guarded by mutex_
  std::map<std::uint64_t, std::function<void()>> wakes_;  // guarded by mutex_
  std::uint64_t next_ = 0;                                // guarded by mutex_
};

}  // namespace shardwise::exec
