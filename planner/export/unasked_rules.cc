#include "planner/export/unasked_rules.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/export/check_configuration.h"
#include "planner/export/rule_values.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

/// What says a value that rule_values() makes.
constexpr std::pair<std::string_view, const char*> kSaidBy[] = {
    {"@world", kGpusFlag},
    {"@dp", kGpusFlag},
    {"@hybrid_fits", kGpusFlag},
    {"@before_blackwell", kClusterFlag},
    {"@one_queue", "CUDA_DEVICE_MAX_CONNECTIONS"},
    {"@expandable_segments", "PYTORCH_CUDA_ALLOC_CONF"},
};

/// What is wanted to know a value; nothing where it is known, or known not to be stated.
std::optional<std::string> lack_of(const std::string& name, const Values& values,
                                   const Settings& settings) {
  const auto value = values.find(name);
  const bool open = std::ranges::find(settings.open, name) != settings.open.end() ||
                    (value != values.end() && value->second.find('$') != std::string::npos);
  if (open) return name;
  if (value != values.end()) return std::nullopt;
  const auto* said =
      std::ranges::find(kSaidBy, name, &std::pair<std::string_view, const char*>::first);
  if (said == std::end(kSaidBy)) return std::nullopt;
  // With the ranks it is not there where they make no whole number: another rule says so.
  if (said->second == std::string_view(kGpusFlag) && values.contains("@world")) return std::nullopt;
  return said->second;
}

}  // namespace

std::vector<std::string> lacks_of(const Framework& framework, const CheckRule& rule,
                                  const Values& values, const Settings& settings) {
  std::vector<std::string> lacks;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(lacks, name) == lacks.end()) lacks.push_back(name);
  };
  for (const Clause& clause : rule.when) {
    const std::optional<std::string> lack = lack_of(clause.name, values, settings);
    if (!lack && !holds(clause, values)) return {};
    if (lack) add(*lack);
  }
  if (rule.product.empty()) return lacks;
  std::vector<std::string> factors = rule.product;
  factors.push_back(rule.equals);
  for (const std::string& factor : factors) {
    const auto at = values.find(factor);
    const SettingSpec* spec = framework.find(factor);
    if (const std::optional<std::string> lack = lack_of(factor, values, settings)) {
      add(*lack);
    } else if (at == values.end() && spec != nullptr && spec->field == "gpus") {
      add(factor);  // which the launcher asks its node for
    } else if (!parse_integer(at == values.end() ? factor : at->second)) {
      return {};  // not stated, of which the rule says nothing
    }
  }
  return lacks;
}

Result<std::vector<UnaskedRule>> unasked_rules(const Framework& framework,
                                               const Configuration& configuration,
                                               std::int64_t ranks,
                                               const std::optional<ClusterSpec>& cluster) {
  const Result<Settings> settings = settings_of(framework, configuration);
  if (!settings) return settings.problems();
  if (ranks == 0) ranks = stated_ranks(framework, *settings, configuration);
  const Values values = rule_values(framework, *settings, ranks, cluster);
  std::vector<UnaskedRule> unasked;
  for (const CheckRule& rule : framework.rules) {
    std::vector<std::string> lacks = lacks_of(framework, rule, values, *settings);
    if (!lacks.empty()) unasked.push_back({rule.name, std::move(lacks)});
  }
  return unasked;
}

}  // namespace shardwise
