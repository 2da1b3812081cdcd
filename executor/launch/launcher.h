#pragma once

#include <functional>
#include <optional>
#include <string>

#include "executor/comm/rendezvous.h"

namespace shardwise::exec {

/// Who started this process, and as which of how many.
struct Launcher {
  enum class Kind { alone, torchrun, open_mpi, slurm };
  Kind kind = Kind::alone;
  int rank = 0;
  int ranks = 1;
  /// Where the processes meet that have no MPI; nothing: they have.
  std::optional<Rendezvous> rendezvous;

  /// "threads", "MPI" or "sockets": how ranks talk.
  const char* communicator() const;
};

/// Looks for what launchers tell their processes, in this order: torchrun, or whoever sets what it
/// does (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); Open MPI's mpirun (OMPI_COMM_WORLD_RANK,
/// OMPI_COMM_WORLD_SIZE); Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_ID); else
/// the process is alone. mpirun comes before srun, as it may have srun start its own processes.
///
/// Processes of torchrun meet on MASTER_ADDR at the ports behind MASTER_PORT, which torchrun's
/// agent keeps for itself. Those of srun have MPI where it gives them PMIx (PMIX_NAMESPACE), else
/// they meet on the first host of SLURM_STEP_NODELIST, or MASTER_ADDR, at ports that follow from
/// the job's number, or behind MASTER_PORT. Source:
/// https://docs.pytorch.org/docs/stable/elastic/run.html, "Environment variables"; srun(1), "Output
/// environment variables". \param variable  the value of an environment variable, nullptr when it
/// is not set
Launcher find_launcher(const std::function<const char*(const char*)>& variable);
/// Of this process.
Launcher find_launcher();

std::string name_of(Launcher::Kind kind);

/// The first host of a list of Slurm's: "node[07-12],login" is node07 and others.
/// Source: slurm.conf(5), NodeName.
std::string first_host(const std::string& list);

}  // namespace shardwise::exec
