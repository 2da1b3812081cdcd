#pragma once

#include <memory>

#include "executor/comm/abort.h"
#include "executor/comm/sockets/socket_hub.h"
#include "executor/comm/world.h"

namespace shardwise::exec {

/// Ranks that are processes, one of which this one is.
class ProcessJob {
 public:
  virtual ~ProcessJob() = default;
  ProcessJob() = default;
  ProcessJob(const ProcessJob&) = delete;
  ProcessJob& operator=(const ProcessJob&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The job as this process sees it. \pre this outlives it
  virtual std::unique_ptr<World> world(AbortSignal& abort, double patience_s) = 0;
  /// Connections to the others, whatever groups talk through.
  virtual SocketHub& hub() = 0;
  /// Ends this process, and whichever of the job the launcher can end, with this exit code.
  [[noreturn]] virtual void end(int exit_code) = 0;
};

}  // namespace shardwise::exec
