#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardwise::exec {

struct RankStatus;

/// Thrown where a rank waits for others once the run has failed somewhere: the rank that failed
/// says why, the others only stop.
class Aborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reason of an exception, in words also where it is of the language: "out of memory".
std::string reason_of(const std::exception& broken);

/// Failure that ended a run.
struct Failure {
  enum class Kind : std::uint8_t {
    broken,     // the world broke
    hung,       // ranks do not come, or cannot be reached: what all of them do is worth telling
    bad_input,  // something the user gave is wrong and was found late
  };
  Kind kind = Kind::broken;
  std::string message;
};

/// A rank as those see it who look for what hangs, or at a live job. Called from other threads.
struct Watched {
  int rank = 0;
  /// When one of its operations last began or ended, nanoseconds of the steady clock; now, when it
  /// runs none.
  std::function<std::int64_t()> since;
  /// Describes its work and what ended last, in lines; those that explain one are indented by two.
  std::function<std::string()> describe;
  /// Puts the same into a status; none where it adds nothing.
  std::function<void(RankStatus&)> tell = {};
};

/// Whether a run has failed, and what wakes those who wait. One for all ranks of a process.
class AbortSignal {
 public:
  /// The first call decides what is said; later ones are what the first one caused.
  void raise(const Failure& failure);
  void raise(const std::string& message) { raise(Failure{Failure::Kind::broken, message}); }
  void raise_hung(const std::string& message) { raise(Failure{Failure::Kind::hung, message}); }
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  /// First failure. \pre raised()
  Failure failure() const;
  /// Its message, followed by what the watched ranks do where they hang; empty when nothing is
  /// wrong.
  std::string message() const;
  /// Work of each watched rank, by rank; once the run hangs, what each did then.
  std::string describe() const;
  /// Statuses of a live job, a rank each.
  std::vector<RankStatus> statuses() const;
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
  std::string describe_locked() const;

  std::atomic<bool> raised_{false};
  mutable std::mutex mutex_;
  Failure failure_;                                           // guarded by mutex_
  std::string did_;                                           // when it hung; guarded by mutex_
  std::map<std::uint64_t, std::function<void()>> wakes_;      // guarded by mutex_
  std::map<std::pair<int, std::uint64_t>, Watched> watched_;  // by rank; guarded by mutex_
  std::uint64_t next_ = 0;                                    // guarded by mutex_
};

}  // namespace shardwise::exec
