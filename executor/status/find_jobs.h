#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "executor/status/rank_status.h"

namespace shardwise::exec {

// Live jobs of this machine, as their processes answer.

/// The name under which a process of a job answers.
/// \param job  16 hexadecimal digits \param rank  the lowest of the process
std::string status_name(std::string_view job, int rank);

/// Asks the jobs of this user, or, as root, those of all. The lowest rank of each job that is here
/// is asked, then, where it does not answer for three seconds, the next ones. Those of other users
/// that pass for this one's are not believed. At most a few hundred jobs are asked.
/// \param only  the number of a job, or its begin; empty: all
std::vector<JobStatus> find_jobs(const std::string& only = "");

}  // namespace shardwise::exec
