#pragma once

#include <functional>
#include <string>

namespace shardwise::exec {

/// Who started this process, and as one of how many.
struct Launcher {
  enum class Kind { alone, torchrun, slurm, open_mpi };
  Kind kind = Kind::alone;
  int ranks = 1;
};

/// Looks for what launchers tell their processes, in this order: torchrun (RANK, WORLD_SIZE and
/// TORCHELASTIC_RUN_ID), Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS), Open MPI's mpirun
/// (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE); else the process is alone.
/// \param variable  the value of an environment variable, nullptr when it is not set
Launcher find_launcher(const std::function<const char*(const char*)>& variable);

std::string name_of(Launcher::Kind kind);

}  // namespace shardwise::exec
