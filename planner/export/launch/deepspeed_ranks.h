#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/export/launch/host_file.h"
#include "planner/export/launch/launcher_flags.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The ranks that `deepspeed` starts on hosts.
struct DeepspeedRanks {
  std::int64_t ranks = 0;  // 0: nobody knows
  Diagnostics problems;    // what deepspeed refuses
  Diagnostics notes;       // why nobody knows
};

/// Counts as the launcher does: the hosts of the hostfile, less what --include, --exclude,
/// --num_nodes and --num_gpus leave out. Nothing where neither the hostfile nor one of the first
/// two decides: then there are --num_nodes times --num_gpus. \param hosts  of the hostfile; null
/// where nobody gave it \param file   the name put into diagnostics Source: deepspeed 0.19.8,
/// deepspeed/launcher/runner.py, parse_resource_filter and
///         apply_num_nodes_and_gpus.
std::optional<DeepspeedRanks> deepspeed_ranks(const LauncherFlags& flags, const HostFile* hosts,
                                              const std::string& file);

}  // namespace shardwise
