#pragma once

#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/settings_of.h"

namespace shardwise {

/// Whether it is a key of older versions, at the top of a framework's file.
bool is_removed(const Framework& framework, const std::string& key);

/// Keys of older versions, which this one refuses: each once, with whatever is in it.
std::vector<Finding> removed_keys(const Framework& framework, const Settings& settings);

/// Arguments of older versions, which this one refuses.
std::vector<Finding> removed_flags(const Framework& framework, const Settings& settings);

}  // namespace shardwise
