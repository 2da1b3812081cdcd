#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/export/framework/framework.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// \returns what the file says of a framework, schema "shardwise.framework/1", or everything wrong
///          with it. Each name that a condition, a choice or a rule uses is a setting of the file.
Result<Framework> read_framework(const std::filesystem::path& path);

/// The names in the catalogue.
std::vector<std::string> framework_names();

/// The entry of the catalogue, or a problem of `flag` with the nearest name.
Result<Framework> load_framework(const std::string& name, const std::string& flag);

/// The text of a file that stands beside a framework's: its training script.
Result<std::string> read_beside(const std::string& framework, const std::string& file);

}  // namespace shardwise
