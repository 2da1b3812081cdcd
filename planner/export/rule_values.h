#pragma once

#include <cstdint>
#include <optional>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

/// The values that rules ask for: those of the settings, and with "@" what follows from them.
/// \param ranks  of the job; 0 for not known
Values rule_values(const Framework& framework, const Settings& settings, std::int64_t ranks,
                   const std::optional<ClusterSpec>& cluster);

}  // namespace shardwise
