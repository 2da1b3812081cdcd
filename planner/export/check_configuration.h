#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Something wrong with a configuration, at its place.
struct Finding {
  std::string rule;  // CheckRule::name, or what no rule of the table says: "unknown_key"
  CheckRule::Kind kind = CheckRule::Kind::refused;
  Diagnostic what;  // the hint is the fix
  std::string source;
};

/// A setting that the framework refuses where it stands.
/// \param source  the line of its code \param rule  Finding::rule \param hint  the fix
Finding refused_at(const std::string& source, const char* rule, const GivenSetting& place,
                   std::string message, std::string hint);

/// Findings where a configuration contradicts itself, by the framework's rules and its list of
/// keys. \param ranks    of the job; 0: those that its launcher or a setting states, without which
/// rules
///                 that need them are not asked: unasked_rules() names them
/// \param cluster  that it is for, or nothing
/// \returns the findings in the order of the rules; or every value of a wrong kind, with what the
///          framework refuses of the other settings; or that the ranks are not those that the
///          configuration states
Result<std::vector<Finding>> check_configuration(const Framework& framework,
                                                 const Configuration& configuration,
                                                 std::int64_t ranks,
                                                 const std::optional<ClusterSpec>& cluster);

/// The ranks that the launcher or a setting states; 0 for none.
std::int64_t stated_ranks(const Framework& framework, const Settings& settings,
                          const Configuration& configuration);

/// Problems of a configuration for which no plan follows from it.
/// \param settings  of the configuration
Diagnostics contradictions_of(const Framework& framework, const Configuration& configuration,
                              const Settings& settings, std::int64_t ranks);

/// Problems of a configuration, and behind them the values that the framework does not take, at
/// settings where no problem stands: all that is wrong is said at once.
Diagnostics with_refused_values(Diagnostics problems, const Framework& framework,
                                const Settings& settings);

/// "refused by Megatron-LM", "silent" …: what a finding of that kind means.
std::string kind_words(CheckRule::Kind kind, const Framework& framework);

}  // namespace shardwise
