#pragma once

#include <optional>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"

namespace shardwise {

/// Finding on the module or the recipe that a configuration names: the module is spelled
/// almost as one of the framework's, or has no such recipe. A module of the user's own may have
/// any.
std::optional<Finding> wrong_recipe(const Framework& framework, const Settings& settings);

}  // namespace shardwise
