#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/comm/abort.h"

namespace shardwise::exec {

/// Where the threads of a group wait for one another: none leaves before all have arrived.
class Barrier {
 public:
  /// \param ranks  of the job, for messages
  Barrier(std::vector<std::int64_t> ranks, AbortSignal& abort, std::chrono::milliseconds patience);
  std::size_t size() const { return ranks_.size(); }
  /// Waits for all. The run fails when a rank has not arrived after the timeout, or is in another
  /// call; the message names the ranks and the calls. \throws Aborted when the run fails
  /// \param call  that this rank is in
  void wait(int member, const char* call);
  /// Leaves as a member whose memory nobody reads any more: it does not wait for the others now,
  /// but before it arrives again.
  void leave(int member, const char* call);

  /// Pointers that ranks show one another between two waits, by member.
  std::vector<const void*> shown;

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// \returns the number of the wait that it arrived at
  std::uint64_t arrive(Lock& lock, int member, const char* call);
  /// Until all have arrived at that one.
  void await(Lock& lock, std::uint64_t number, int member, const char* call);
  void give_up(int member, const char* call);
  void wake();

  std::vector<std::int64_t> ranks_;
  AbortSignal& abort_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<bool> here_;      // guarded by mutex_
  std::size_t arrived_ = 0;     // guarded by mutex_
  std::uint64_t number_ = 0;    // of waits so far; guarded by mutex_
  const char* call_ = nullptr;  // of the first that arrived; guarded by mutex_
  int first_ = 0;               // that member; guarded by mutex_
  std::shared_ptr<void> watch_;
};

}  // namespace shardwise::exec
