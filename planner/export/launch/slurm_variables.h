#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/export/launch/shell_command.h"

namespace shardwise {

/// The variables that Slurm gives a batch script for its #SBATCH lines: nodes, tasks and GPUs. A
/// count that the lines leave open ("--nodes=2-4") sets none.
/// \param directives  words of the #SBATCH lines
/// Source: sbatch of Slurm, "Output environment variables".
std::map<std::string, ShellWord> slurm_variables(const std::vector<ShellWord>& directives);

/// Whether srun has flags by which a step has other counts than its job.
bool changes_slurm_counts(const std::vector<ShellWord>& words);

}  // namespace shardwise
