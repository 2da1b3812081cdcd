#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Count of the settings that describe the architecture which a configuration states.
std::ptrdiff_t stated_sizes(const Framework& framework, const Settings& settings);

/// Sizes from which on a configuration describes its model: layers, width, heads and one more.
inline constexpr std::ptrdiff_t kFewestSizes = 4;

/// A setting that a configuration does not state, and whose default is not the model's.
struct AbsentSetting {
  const SettingSpec* spec = nullptr;
  std::string by_default;
  std::string of_model;  // as the framework would be told
};

/// Those of a configuration that describes its model; of another one the model is said elsewhere.
std::vector<AbsentSetting> absent_settings(const Framework& framework, const Settings& settings,
                                           const ModelSpec& model);

}  // namespace shardwise
