#include "planner/export/check_removed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardwise {

bool is_removed(const Framework& framework, const std::string& key) {
  return std::ranges::find(framework.removed_keys, key) != framework.removed_keys.end();
}

std::vector<Finding> removed_keys(const Framework& framework, const Settings& settings) {
  std::vector<Finding> findings;
  std::vector<std::string> named;
  for (const GivenSetting* each : settings.unknown) {
    const std::string top = each->name.substr(0, each->name.find('.'));
    if (!each->value || !is_removed(framework, top)) continue;
    if (std::ranges::find(named, top) != named.end()) continue;
    named.push_back(top);
    Finding finding;
    finding.rule = "removed_key";
    finding.source = framework.source_of("removed");
    finding.what = {
        each->file,
        each->line,
        each->column,
        "/" + top,
        fmt::format("a key of older versions, {} {} has none", framework.label, framework.version),
        "leave it out"};
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> removed_flags(const Framework& framework, const Settings& settings) {
  std::vector<Finding> findings;
  for (const GivenSetting* each : settings.unknown) {
    const auto at = std::ranges::find(framework.removed_flags, each->name,
                                      &std::pair<std::string, std::string>::first);
    if (each->value || at == framework.removed_flags.end()) continue;
    findings.push_back(refused_at(framework.source_of("removed"), "removed_key", *each,
                                  fmt::format("an argument of older versions, {} {} refuses it",
                                              framework.label, framework.version),
                                  at->second));
  }
  return findings;
}

}  // namespace shardwise
