#pragma once

#include <functional>
#include <memory>

#include "executor/comm/abort.h"
#include "executor/comm/communicator.h"

namespace shardwise::exec {

/// Ranks that are processes of an MPI job (mpirun, or srun with its MPI). Each stream's thread
/// calls for itself and keeps polling until its call is over, which is what moves the bytes: Open
/// MPI progresses nothing between calls. Sums are pairwise exchanges and the fold in rank order of
/// `Communicator`, so they have the bits that threads give.
class MpiJob {
 public:
  /// \throws IoError when the MPI library cannot be called from several threads
  MpiJob();
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The job as this process sees it. \pre this outlives it
  std::unique_ptr<World> world(AbortSignal& abort, double patience_s);
  /// Ends all processes of the job, with this exit code.
  [[noreturn]] void end_all(int exit_code);

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace shardwise::exec
