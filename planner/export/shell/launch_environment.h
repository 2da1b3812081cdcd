#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/export/shell/shell_text.h"

namespace shardwise {

/// Variables that the words before a program's arguments start it with.
struct LaunchEnvironment {
  std::vector<ShellWord> set;      // "NAME=VALUE"
  std::vector<std::string> unset;  // by env -u
  std::vector<SourcedFile> files;  // of variables: docker's --env-file
};

/// Reads srun --export=ALL,X=1, env X=1, mpirun -x X=1, mpiexec -genv X 1, docker and podman -e
/// X=1, apptainer and singularity --env X=1. \param count  words to read: those behind are the
/// program's
LaunchEnvironment launch_environment(const std::vector<ShellWord>& words, std::size_t count);

/// "--export=ALL,X=1" of #SBATCH lines.
LaunchEnvironment job_environment(const std::vector<ShellWord>& directives);

}  // namespace shardwise
