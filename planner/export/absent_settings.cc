#include "planner/export/absent_settings.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/setting_values.h"

namespace shardwise {

std::ptrdiff_t stated_sizes(const Framework& framework, const Settings& settings) {
  return std::ranges::count_if(framework.settings, [&](const SettingSpec& spec) {
    return spec.field.starts_with("model.") && settings.given.contains(spec.name);
  });
}

std::vector<AbsentSetting> absent_settings(const Framework& framework, const Settings& settings,
                                           const ModelSpec& model) {
  std::vector<AbsentSetting> absent;
  if (stated_sizes(framework, settings) < kFewestSizes) return absent;
  const Values facts = model_facts(model);
  for (const SettingSpec& spec : framework.settings) {
    const auto fact = facts.find(spec.field);
    const bool is_open = std::ranges::find(settings.open, spec.name) != settings.open.end();
    if (fact == facts.end() || is_open || settings.given.contains(spec.name)) continue;
    if (!spec.by_default || !holds(spec.when, facts)) continue;
    const auto at = settings.values.find(spec.name);
    const std::optional<std::string> wanted = theirs(spec, fact->second);
    if (!wanted || at == settings.values.end()) continue;
    const std::string of_model = canonical(spec.kind, *wanted).value_or(*wanted);
    if (of_model != at->second) absent.push_back({&spec, at->second, of_model});
  }
  return absent;
}

}  // namespace shardwise
