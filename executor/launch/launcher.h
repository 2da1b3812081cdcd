#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/comm/sockets/rendezvous.h"
#include "executor/launch/launcher_variables.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// By which shardwise-run tells processes that it starts itself who they are (local_ranks.h). They
/// have them beside the variables of what started shardwise-run.
inline constexpr const char* kRankVariable = "SHARDWISE_RANK";
inline constexpr const char* kRanksVariable = "SHARDWISE_RANKS";

/// Launcher that started this process, and as which rank of how many.
struct Launcher {
  enum class Kind { alone, local, torchrun, open_mpi, slurm };
  Kind kind = Kind::alone;
  int rank = 0;
  int ranks = 1;
  std::int64_t restart = 0;  // how often it started the job again, where it says so
  /// Where processes without MPI find one another; nothing where they have MPI.
  std::optional<Rendezvous> rendezvous;
  /// The variable that names the rendezvous host.
  std::string host_variable = "MASTER_ADDR";

  /// "threads", "MPI" or "sockets": the transport between ranks.
  const char* communicator() const;
};

/// Reads the variables that launchers set, in this order: shardwise-run itself, which starts ranks
/// of one host (kRankVariable, kRanksVariable); torchrun and whatever sets the same (RANK,
/// WORLD_SIZE, MASTER_ADDR, MASTER_PORT); Open MPI's mpirun (OMPI_COMM_WORLD_RANK,
/// OMPI_COMM_WORLD_SIZE); Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_ID); else
/// the process is alone. mpirun comes before srun, as it may have srun start its own processes.
///
/// A process never takes itself for alone because of a broken variable: a value that cannot be
/// used, a set of which a part is missing, and the rank or the number of ranks of another launcher
/// (kOthers in launcher.cc) are problems; a job of one process is none. In Slurm's batch script
/// SLURM_PROCID is 0 and there is no step: the process is alone, whatever SLURM_NTASKS says. Where
/// mpirun's or srun's set is whole, RANK and WORLD_SIZE may be set beside it, as batch scripts do,
/// and have to agree with it.
///
/// Processes are of one host where MASTER_ADDR is localhost or a loopback address, where
/// LOCAL_WORLD_SIZE is WORLD_SIZE, and where SLURM_STEP_NUM_NODES is 1.
///
/// Processes of torchrun meet on MASTER_ADDR at the ports behind MASTER_PORT, which torchrun's
/// agent keeps for itself. Those of srun have MPI where it gives them PMIx (PMIX_NAMESPACE), else
/// they meet on the first host of SLURM_STEP_NODELIST, or MASTER_ADDR, at ports that follow from
/// the job's number, or behind MASTER_PORT. Source:
/// https://docs.pytorch.org/docs/stable/elastic/run.html, "Environment variables"; srun(1), "Output
/// environment variables".
Result<Launcher> find_launcher(const LauncherVariables::Variable& variable);
/// Finds that of this process.
Result<Launcher> find_launcher();
/// The variables of this process's environment.
LauncherVariables own_variables();

std::string name_of(Launcher::Kind kind);

/// The first host of a list of Slurm's: "node[07-12],login" is node07 and others.
/// Source: slurm.conf(5), NodeName.
std::string first_host(const std::string& list);

}  // namespace shardwise::exec
