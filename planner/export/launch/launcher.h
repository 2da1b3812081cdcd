#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/launch/host_file.h"
#include "planner/export/launch/launcher_flags.h"
#include "planner/export/launch/shell_command.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Words before the arguments of a program: torchrun, accelerate launch, deepspeed, srun,
/// python and the program's name.
struct Launch {
  std::size_t arguments = 0;  // words before them
  std::int64_t ranks = 0;     // that the job has; 0: it does not say
  LauncherFlags accelerate;   // flags of `accelerate launch` that its YAML has as keys
  Diagnostics problems;       // counts that are no counts
  Diagnostics notes;          // what it says where it is not read
};

/// Files given beside a job's command.
struct GivenFiles {
  std::vector<std::string> names;  // of the files that are read
  std::optional<HostFile> hosts;   // of the hostfile among them

  /// Whether one of the files has the name, in whichever folder.
  bool has(std::string_view path) const;
};

/// \param command  its words, and #SBATCH lines, which say what the command leaves open
/// \param file     the name put into diagnostics
Launch read_launch(const ShellCommand& command, const std::string& file,
                   const GivenFiles& given = {});

/// Whether a command starts a training program, as far as its words say.
bool starts_program(const std::vector<ShellWord>& words);

}  // namespace shardwise
