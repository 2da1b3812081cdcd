#pragma once

#include <optional>
#include <string>

#include "planner/export/framework/conditions.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/kept_settings.h"

namespace shardwise {

// A framework's recipes name a model and bring values of settings with them. The table knows some
// models, and the values of some recipes; of the others a user names the model, and a plan keeps
// the recipe.

/// Whether the settings name a recipe whose model the table does not have.
bool is_other_recipe(const Framework& framework, const Values& settings);

/// Model that a recipe trains whose name no plan is exported with.
std::optional<std::string> trained_model(const Framework& framework, const Values& settings);

/// Whether the module that the settings name has the recipe that they name.
bool is_of_module(const Framework& framework, const Values& settings);

/// Whether what a recipe has for settings that are not stated is known: of its presets, or where
/// there are no recipes.
bool knows_recipe(const Framework& framework, const Values& settings);

/// Kept setting of a plan that names its model; null where the table has the model's.
const KeptSetting* kept_recipe(const Framework& framework, const SettingSpec& spec,
                               const KeptSettings& kept);

}  // namespace shardwise
