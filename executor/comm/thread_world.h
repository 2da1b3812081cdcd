#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/communicator.h"

namespace shardwise::exec {

/// A place where the ranks of a group meet: nobody leaves before all have come.
class Meeting {
 public:
  /// \param ranks  of the job, for messages
  Meeting(std::vector<std::int64_t> ranks, AbortSignal& abort, std::chrono::milliseconds patience);
  std::size_t size() const { return ranks_.size(); }
  /// Waits for all. \throws Aborted when the run fails; when somebody has not come after the
  /// patience, the run fails with a message that says who and where the others are.
  void meet(int member, const char* what);

  /// What ranks show one another between two meetings, by member.
  std::vector<const std::byte*> shown;

 private:
  void give_up(int member, const char* what);
  void wake();

  std::vector<std::int64_t> ranks_;
  AbortSignal& abort_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<bool> here_;    // guarded by mutex_
  std::size_t arrived_ = 0;   // guarded by mutex_
  std::uint64_t number_ = 0;  // of meetings so far; guarded by mutex_
  std::shared_ptr<void> watch_;
};

/// Ranks that are threads of this process and read one another's memory. Deterministic: a rank
/// computes its own piece of a sum from everybody's buffers, in rank order.
class ThreadRanks {
 public:
  ThreadRanks(int size, AbortSignal& abort,
              std::chrono::milliseconds patience = std::chrono::minutes(10));
  int size() const { return size_; }
  /// The job as `rank` sees it. \pre this outlives it
  std::unique_ptr<World> world(int rank);

 private:
  friend class ThreadWorld;
  std::shared_ptr<Meeting> meeting(const std::vector<std::int64_t>& ranks, Channel channel);

  int size_;
  AbortSignal& abort_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::map<std::pair<std::vector<std::int64_t>, Channel>, std::shared_ptr<Meeting>>
      meetings_;  // guarded by mutex_
};

/// Runs `rank_main(world)` for every rank on a thread of its own and waits for all of them. The
/// first exception ends the others and is thrown here, naming its rank.
void run_ranks(int size, AbortSignal& abort, const std::function<void(World&)>& rank_main,
               std::chrono::milliseconds patience = std::chrono::minutes(10));

}  // namespace shardwise::exec
