#include "planner/export/configuration/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "planner/export/configuration/accelerate_deepspeed.h"
#include "planner/export/configuration/megatron_deepspeed.h"
#include "planner/export/launch/torchtitan_script.h"
#include "planner/export/shell/shell_variables.h"

namespace shardwise {

Result<Configuration> read_job(const std::vector<JobFile>& files,
                               const std::vector<std::string>& command) {
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
  if (problems.empty() && others.empty() && command.empty() && given.hosts) {
    problems.push_back({given.hosts->file, 1, 0, "", "is a hostfile, no configuration",
                        "give the command that reads it too"});
  }
  std::vector<Configuration> all;
  const auto take = [&](Result<Configuration> read) {
    if (read) {
      all.push_back(*std::move(read));
    } else {
      problems.insert(problems.end(), read.problems().begin(), read.problems().end());
    }
  };
  if (!command.empty()) take(configuration_of_words(command, given));
  for (const JobFile* each : others) {
    take(read_configuration(each->text, each->name, given, each->start));
  }
  if (!problems.empty()) return problems;
  Result<Configuration> job = joined(std::move(all));
  if (!job) return job;
  assume_several_gpus(*job);
  problems = take_accelerate_for_launcher(*job);
  if (problems.empty()) problems = take_megatron_deepspeed(*job);
  if (!problems.empty()) return problems;
  return job;
}

std::optional<JobFile> script_of_command(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 5> kEndings = {".sh", ".slurm", ".sbatch", ".bash",
                                                        ".job"};
  const auto is_script = [&](const std::string& word) {
    return std::ranges::any_of(kEndings, [&](std::string_view end) { return word.ends_with(end); });
  };
  JobFile made;
  made.start.stated = true;
  std::size_t at = 0;
  for (; at < words.size() && is_assignment(words[at]); ++at) {
    made.start.environment.push_back({words[at], 0, 0});
  }
  if (at == words.size()) return std::nullopt;
  const std::string name = words[at].substr(words[at].rfind('/') + 1);
  const bool batch = name == "sbatch";
  if (batch || name == "bash" || name == "sh") {
    for (++at; at < words.size() && !is_script(words[at]); ++at) {
      if (!batch && !words[at].starts_with('-')) break;
      if (!batch && words[at].ends_with('c')) return std::nullopt;
      if (batch) made.start.options.push_back({words[at], 0, 0});
    }
  } else if (!is_script(name) || is_torchtitan_script(words[at])) {
    return std::nullopt;
  }
  if (at == words.size()) return std::nullopt;
  made.name = words[at];
  for (++at; at < words.size(); ++at) made.start.arguments.push_back({words[at], 0, 0});
  return made;
}

}  // namespace shardwise
