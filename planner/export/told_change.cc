#include "planner/export/told_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/export/export_plan.h"
#include "planner/export/write_configuration.h"

namespace shardwise {
namespace {

/// "--x 2", "name: 2", "NAME=2".
std::string setting_words(const Framework& framework, const WrittenSetting& setting) {
  if (setting.spec->place == SettingPlace::environment) {
    return setting.value.empty() ? fmt::format("without {}", setting.spec->name)
                                 : fmt::format("{}={}", setting.spec->name, setting.value);
  }
  if (setting.spec->place == SettingPlace::script) {
    return fmt::format("{} {}", setting.spec->name, setting.value);
  }
  if (!framework.takes_words()) return fmt::format("{}: {}", setting.spec->name, setting.value);
  std::string line = configuration_text(framework, {setting}, {});
  while (line.ends_with('\n')) line.pop_back();
  return line.empty() ? fmt::format("without {}", setting.spec->name) : line;
}

const WrittenSetting* written_of(const std::vector<WrittenSetting>& settings,
                                 const SettingSpec* spec) {
  const auto at = std::ranges::find(settings, spec, &WrittenSetting::spec);
  return at == settings.end() ? nullptr : &*at;
}

}  // namespace

std::string told_change(const Framework& framework, const Plan& from, const Plan& to) {
  const std::optional<std::vector<WrittenSetting>> before = told_as_it_is(framework, from);
  const std::optional<std::vector<WrittenSetting>> after = told_as_it_is(framework, to);
  if (!before || !after) return "";
  std::vector<std::string> words;
  for (const WrittenSetting& each : *after) {
    const WrittenSetting* was = written_of(*before, each.spec);
    if (was == nullptr || was->value != each.value) words.push_back(setting_words(framework, each));
  }
  for (const WrittenSetting& each : *before) {
    if (written_of(*after, each.spec) != nullptr) continue;
    const bool has_value = each.spec->kind != SettingKind::on && each.spec->by_default;
    words.push_back(has_value ? setting_words(framework, {each.spec, *each.spec->by_default})
                              : fmt::format("without {}", each.spec->name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace shardwise
