#pragma once

#include <memory>

#include "executor/comm/sockets/process_job.h"
#include "executor/comm/sockets/rendezvous.h"

namespace shardwise::exec {

/// Ranks that are processes without MPI, as torchrun starts them: every group has connections of
/// its own, which the thread that calls reads and writes until its call is over. The kernel moves
/// bytes meanwhile, and who waits takes no core.
class SocketJob : public ProcessJob {
 public:
  /// Waits for all to come. \throws what meet() throws
  SocketJob(const Rendezvous& rendezvous, int rank, int size, double patience_s);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_.members().size()); }
  std::unique_ptr<World> world(AbortSignal& abort, double patience_s) override;
  SocketHub& hub() override { return hub_; }
  [[noreturn]] void end(int exit_code) override;

 private:
  int rank_;
  SocketHub hub_;
};

}  // namespace shardwise::exec
