#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "planner/export/configuration/configuration.h"
#include "planner/export/framework/framework.h"

namespace shardwise {

/// How many of the settings by which a framework is known a configuration has.
/// \param file  that has them; empty: any
std::size_t marks_of(const Framework& framework, const Configuration& configuration,
                     const std::string& file = "");

/// A configuration of another framework than the one that a user names.
/// \param flag  by which it is named
std::optional<Diagnostic> named_wrongly(const Framework& named, const Configuration& configuration,
                                        const std::string& flag);

/// Files of another framework than the job's, beside one that is of it.
Diagnostics files_of_others(const Framework& framework, const Configuration& configuration);

}  // namespace shardwise
