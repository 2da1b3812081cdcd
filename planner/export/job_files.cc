#include "planner/export/job_files.h"

#include <fmt/format.h>

#include <utility>

#include "planner/export/accelerate_deepspeed.h"

namespace shardwise {

Result<Configuration> read_job(const std::vector<JobFile>& files) {
  Diagnostics problems;
  GivenFiles given;
  std::vector<const JobFile*> others;
  for (const JobFile& each : files) {
    given.names.push_back(each.name);
    if (each.name.ends_with(".sh") || !is_host_file(each.text)) {
      others.push_back(&each);
      continue;
    }
    Result<HostFile> hosts = read_host_file(each.text, each.name);
    if (!hosts) {
      problems.insert(problems.end(), hosts.problems().begin(), hosts.problems().end());
    } else if (given.hosts) {
      problems.push_back({each.name, 1, 0, "",
                          fmt::format("is a hostfile, and so is {}", given.hosts->file),
                          "one hostfile of a job"});
    } else {
      given.hosts = *std::move(hosts);
    }
  }
  if (problems.empty() && others.empty() && given.hosts) {
    problems.push_back({given.hosts->file, 1, 0, "", "is a hostfile, no configuration",
                        "give the command that reads it too"});
  }
  std::vector<Configuration> all;
  for (const JobFile* each : others) {
    Result<Configuration> read = read_configuration(each->text, each->name, given);
    if (read) {
      all.push_back(*std::move(read));
    } else {
      problems.insert(problems.end(), read.problems().begin(), read.problems().end());
    }
  }
  if (!problems.empty()) return problems;
  Result<Configuration> job = joined(std::move(all));
  if (!job) return job;
  problems = take_accelerate_for_launcher(*job);
  if (!problems.empty()) return problems;
  return job;
}

}  // namespace shardwise
