#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/comm/abort.h"

namespace shardwise::exec {

/// Time the groups of a process wait for other processes, and what ends it sooner.
struct Patience {
  AbortSignal* abort = nullptr;
  double seconds = 0;
  int rank = 0;  // of the job, for messages
};

/// The bytes for each rank of a group and from it; empty: none, as for itself.
struct Transfers {
  explicit Transfers(std::size_t ranks) : sent(ranks), received(ranks) {}
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> received;
};

/// The processes of a group. Its one function is all that a back end of processes implements; every
/// call of a ProcessControlGroup and a ProcessCommunicator is made of it.
class ProcessPeers {
 public:
  /// \param ranks  of the job, in the group's order; the process's own is one of them
  ProcessPeers(std::vector<std::int64_t> ranks, const Patience& patience);
  virtual ~ProcessPeers() = default;
  ProcessPeers(const ProcessPeers&) = delete;
  ProcessPeers& operator=(const ProcessPeers&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// Sends and receives with all of them at once; returns when both are over. \throws Aborted
  /// \param call  that it is part of, for messages
  virtual void transfer(const char* call, const Transfers& transfers) = 0;

 protected:
  const Patience& patience() const { return patience_; }
  /// Ends the run as these ranks of the group do not arrive.
  [[noreturn]] void give_up(const char* call, const std::vector<std::size_t>& missing) const;

 private:
  std::vector<std::int64_t> ranks_;
  Patience patience_;
  int rank_ = 0;
};

}  // namespace shardwise::exec
