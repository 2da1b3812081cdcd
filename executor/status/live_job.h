#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/status/rank_status.h"
#include "executor/status/status_server.h"

namespace shardwise::exec {

/// Facts of a job, for those that ask for it.
struct JobFacts {
  std::string verb;
  std::string plan;           // empty: none
  std::string folder;         // of its checkpoints; empty: none
  std::int32_t launcher = 0;  // as JobStatus has it
};

/// A job whose status find_jobs() finds, for as long as this lives. Where it cannot be asked it
/// runs all the same, and a line on standard error says so.
class LiveJob {
 public:
  /// Serves one of its processes.
  /// \param job    16 hexadecimal digits, the same in all \param rank  the lowest of the process
  /// \param ranks  says what all ranks do; called from another thread
  LiveJob(const std::string& job, int rank, const JobFacts& facts,
          std::function<std::vector<RankStatus>()> ranks);
  /// Serves a process whose threads are the ranks. \pre abort outlives this
  LiveJob(const JobFacts& facts, const AbortSignal& abort);

 private:
  void listen(int rank, std::function<std::vector<RankStatus>()> ranks);

  JobStatus job_;  // without its ranks
  std::chrono::steady_clock::time_point began_;
  std::optional<StatusServer> server_;
};

}  // namespace shardwise::exec
