#include "planner/export/framework/recipe.h"

#include <algorithm>

#include "planner/export/framework/setting_values.h"

namespace shardwise {

bool is_other_recipe(const Framework& framework, const Values& settings) {
  if (framework.recipes.recipe.empty()) return false;
  return std::ranges::any_of(framework.settings, [&](const SettingSpec& spec) {
    const auto at = settings.find(spec.name);
    return spec.field == "model" && at != settings.end() && !ours(spec, at->second);
  });
}

std::optional<std::string> trained_model(const Framework& framework, const Values& settings) {
  const auto named = settings.find(framework.recipes.recipe);
  if (named == settings.end()) return std::nullopt;
  for (const auto& [model, recipe] : framework.recipes.trains) {
    if (recipe == named->second) return model;
  }
  return std::nullopt;
}

bool is_of_module(const Framework& framework, const Values& settings) {
  const auto module = settings.find(framework.recipes.module);
  const auto recipe = settings.find(framework.recipes.recipe);
  if (module == settings.end() || recipe == settings.end()) return false;
  return std::ranges::any_of(framework.recipes.known, [&](const auto& known) {
    const bool is_it = module->second == known.first || module->second.ends_with("." + known.first);
    return is_it && known.second == recipe->second;
  });
}

bool knows_recipe(const Framework& framework, const Values& settings) {
  if (framework.recipes.recipe.empty()) return true;
  return std::ranges::any_of(framework.presets, [&](const Preset& preset) {
    return !preset.when.empty() && holds(preset.when, settings);
  });
}

const KeptSetting* kept_recipe(const Framework& framework, const SettingSpec& spec,
                               const KeptSettings& kept) {
  if (spec.field != "model" || kept.framework != framework.name) return nullptr;
  const auto at = std::ranges::find(kept.settings, spec.name, &KeptSetting::name);
  return at == kept.settings.end() || at->words.size() != 1 ? nullptr : &*at;
}

}  // namespace shardwise
