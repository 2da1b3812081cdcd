#include "planner/export/check_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "planner/export/configuration/settings_of.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr const char* kMisplaced = "misplaced_word";
constexpr const char* kUnexpected = "unexpected_word";

bool stands_among(const std::string& name, const std::vector<std::string>& names) {
  return std::ranges::find(names, name) != names.end();
}

/// "activation-checkpoint:full"
std::string given_choice(const GivenSetting& given) {
  return given.words.empty() ? given.name : given.name + ":" + given.words.front();
}

}  // namespace

std::vector<Finding> misplaced_words(const Framework& framework,
                                     const Configuration& configuration) {
  std::vector<Finding> findings;
  if (framework.form != ConfigurationForm::overrides) return findings;
  std::vector<const GivenSetting*> choices;
  for (const GivenSetting& each : configuration.settings) {
    if (each.value) continue;
    const std::string name = table_name(framework, each).name;
    if (!choices.empty() && choices.front()->file != each.file) choices.clear();
    if (!name.starts_with('-')) {
      if (framework.find(name) == nullptr) continue;
      const bool again = std::ranges::any_of(choices, [&](const GivenSetting* before) {
        return table_name(framework, *before).name == name;
      });
      if (again) {
        findings.push_back(refused_at(framework.source_of("order"), kMisplaced, each,
                                      fmt::format("{} stands behind {}", shown(given_choice(each)),
                                                  shown(given_choice(*choices.back()))),
                                      "one of both"));
      }
      choices.push_back(&each);
      continue;
    }
    const std::string section = name.substr(0, name.find('.'));
    const auto& known = framework.sections;
    if (choices.empty() || std::ranges::find(known, section) == known.end()) continue;
    findings.push_back(refused_at(
        framework.source_of("order"), kMisplaced, each,
        fmt::format("stands behind {}, which ends the job's flags", given_choice(*choices.back())),
        "put it before"));
  }
  return findings;
}

std::vector<Finding> unexpected_words(const Framework& framework,
                                      const Configuration& configuration) {
  std::vector<Finding> findings;
  if (framework.form != ConfigurationForm::arguments) return findings;
  for (const GivenSetting& each : configuration.settings) {
    const SettingSpec* spec = framework.find(each.name);
    const bool is_read = spec != nullptr && spec->kind != SettingKind::text;  // its kind is checked
    if (each.value || is_read || stands_among(each.name, framework.several_words)) continue;
    if (spec == nullptr && !stands_among(each.name, framework.known_keys)) continue;
    const std::size_t most = stands_among(each.name, framework.switches) ? 0 : 1;
    const bool is_open = std::ranges::any_of(each.words, [](const std::string& word) {
      return word.find('$') != std::string::npos || word.find('`') != std::string::npos;
    });
    if (is_open || each.words.size() <= most) continue;
    findings.push_back(refused_at(
        framework.source_of("unknown"), kUnexpected, each,
        fmt::format("takes {}, and {} stands behind it", most == 0 ? "no value" : "one value",
                    shown(fmt::format("{}", fmt::join(each.words, " ")))),
        most == 0 ? "leave the value out" : "one value, in quotes where it has spaces"));
  }
  return findings;
}

}  // namespace shardwise
