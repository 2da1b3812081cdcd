#pragma once

#include <string>
#include <vector>

#include "planner/export/export_plan.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/kept_settings.h"

namespace shardwise {

/// The settings of the configuration as the framework reads them: lines of arguments as a shell
/// takes them, JSON or YAML. \param kept  settings of other names, written as they were read
std::string configuration_text(const Framework& framework,
                               const std::vector<WrittenSetting>& settings,
                               const std::vector<KeptSetting>& kept);

/// Those of the environment as lines of a shell: "export NAME=VALUE", "unset NAME" where the value
/// is empty.
std::string environment_text(const std::vector<WrittenSetting>& settings);

}  // namespace shardwise
