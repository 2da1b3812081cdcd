#pragma once

#include <string_view>

#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// The mesh axes that ranks of a group differ on, as layouts name them: "dp_shard x cp", "world".
std::string_view axes_of(GroupKind group);

}  // namespace shardwise
