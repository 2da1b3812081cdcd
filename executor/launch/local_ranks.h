#pragma once

#include <string>
#include <vector>

#include "executor/launch/run_options.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

/// Whether ranks of a plan, which no launcher started, are to be processes: where the user says so,
/// and where each has a GPU of this machine and NCCL moves their tensors. CUDA graphs of several
/// GPUs in one process may wait for one another. Source: NCCL user guide, "Using NCCL with CUDA
/// Graphs".
bool are_processes(const Plan& plan, const RunOptions& options);

/// Starts this program again as each rank, with the same words, and waits until all have ended.
///
/// The processes meet at a local socket whose secret is drawn here. They end one another where one
/// fails (ProcessWatch), and end with this process, however it ends: each is killed with the thread
/// that calls. SIGINT, SIGTERM and SIGHUP are passed on to them. Where one is gone before it has
/// met the others, those are ended here.
/// \param words  argv of this process
/// \returns the exit code of the lowest rank that ended itself with another one than 0, else 0
/// \throws IoError when a process cannot be started
int run_local_ranks(const std::vector<std::string>& words, int ranks);

}  // namespace shardwise::exec
