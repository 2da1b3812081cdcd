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

/// A rule of which nobody knows whether the configuration keeps it.
struct UnaskedRule {
  std::string rule;  // CheckRule::name
  /// Names of what is wanted: kGpusFlag, kClusterFlag, or a setting or variable whose value is not
  /// known.
  std::vector<std::string> lacks;
};

inline constexpr const char* kGpusFlag = "--gpus";
inline constexpr const char* kClusterFlag = "--cluster";

/// Names of what must be known before the settings are asked by a rule. Nothing where that is
/// known: a rule with one condition that does not hold is kept, whatever the others are. \param
/// values  rule_values() of the settings
std::vector<std::string> lacks_of(const Framework& framework, const CheckRule& rule,
                                  const Values& values, const Settings& settings);

/// The rules that check_configuration() with the same arguments cannot ask, in their order.
Result<std::vector<UnaskedRule>> unasked_rules(const Framework& framework,
                                               const Configuration& configuration,
                                               std::int64_t ranks,
                                               const std::optional<ClusterSpec>& cluster);

}  // namespace shardwise
