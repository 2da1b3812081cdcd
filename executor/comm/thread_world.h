#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/barrier.h"
#include "executor/comm/world.h"

namespace shardwise::exec {

/// Ranks that are threads of this process.
class ThreadRanks {
 public:
  ThreadRanks(int size, AbortSignal& abort,
              std::chrono::milliseconds patience = std::chrono::minutes(10));
  int size() const { return size_; }
  /// The job as `rank` sees it. \pre this outlives it
  std::unique_ptr<World> world(int rank);

 private:
  friend class ThreadWorld;
  std::shared_ptr<Barrier> barrier(const std::vector<std::int64_t>& ranks, Channel channel);

  int size_;
  AbortSignal& abort_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::map<std::pair<std::vector<std::int64_t>, Channel>, std::shared_ptr<Barrier>>
      barriers_;  // guarded by mutex_
};

/// Runs `rank_main(world)` for every rank on a thread of its own and waits for all of them. The
/// first exception ends the others and is thrown here, naming its rank.
void run_ranks(int size, AbortSignal& abort, const std::function<void(World&)>& rank_main,
               std::chrono::milliseconds patience = std::chrono::minutes(10));

}  // namespace shardwise::exec
