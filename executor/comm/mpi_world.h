#pragma once

#include <memory>
#include <vector>

#include "executor/comm/sockets/process_job.h"

namespace shardwise::exec {

/// Ranks that are processes of an MPI job (mpirun, or srun with its MPI). Each stream's thread
/// calls for itself and keeps polling until its call is over, which is what moves the bytes: Open
/// MPI progresses nothing between calls.
class MpiJob : public ProcessJob {
 public:
  /// Joins the others. Where they have not come within `patience_s` seconds, ends this process with
  /// exit code 3. \param rank  as the launcher says it
  /// \throws IoError when the MPI library cannot be called from several threads
  MpiJob(double patience_s, int rank);
  ~MpiJob() override;
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<World> world(AbortSignal& abort, double patience_s) override;
  SocketHub& hub() override { return hub_; }
  /// Ends all processes of the job.
  [[noreturn]] void end(int exit_code) override;

 private:
  /// Members of all processes, by rank.
  std::vector<Member> members() const;

  int rank_ = 0;
  int size_ = 1;
  SocketHub hub_;
};

}  // namespace shardwise::exec
