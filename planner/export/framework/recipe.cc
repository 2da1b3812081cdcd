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
