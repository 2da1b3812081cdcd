#pragma once

#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

/// Writes the members that cluster_from_json reads, the cluster's GPU inside it. What was read is
/// written as it was, digit for digit.
void write_cluster(JsonWriter& json, const ClusterSpec& cluster);

}  // namespace shardwise
