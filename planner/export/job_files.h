#pragma once

#include <string>
#include <vector>

#include "planner/export/configuration.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A file of a job, and what stands in it.
struct JobFile {
  std::string name;
  std::string text;
};

/// The configuration that the files of one job have together, in whatever order: scripts, JSON,
/// YAML, lists of arguments, and the hostfile of DeepSpeed's launcher.
/// \returns the configuration, or every problem of every file
Result<Configuration> read_job(const std::vector<JobFile>& files);

}  // namespace shardwise
