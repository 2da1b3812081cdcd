#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A file of a job, and what stands in it.
struct JobFile {
  std::string name;
  std::string text;
  ShellStart start = {};  // of a script
};

/// The configuration that the files of one job have together, in whatever order: scripts, JSON,
/// YAML, lists of arguments, and the hostfile of DeepSpeed's launcher; and the words of a command
/// that starts it, where there are any.
/// \returns the configuration, or every problem of every file
Result<Configuration> read_job(const std::vector<JobFile>& files,
                               const std::vector<std::string>& command = {});

/// The script that a command starts: [NAME=VALUE …] [bash|sh|sbatch OPTIONS] FILE ARGUMENTS.
/// \returns its name and what it is started with, without its text; nothing where the command
/// starts none, as `bash -c TEXT`
std::optional<JobFile> script_of_command(const std::vector<std::string>& words);

}  // namespace shardwise
