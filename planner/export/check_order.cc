#include "planner/export/check_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "planner/export/settings_of.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr const char* kMisplaced = "misplaced_word";

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
        findings.push_back(refused_at(framework, kMisplaced, each,
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
        framework, kMisplaced, each,
        fmt::format("stands behind {}, which ends the job's flags", given_choice(*choices.back())),
        "put it before"));
  }
  return findings;
}

}  // namespace shardwise
