#pragma once

#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/framework/framework.h"

namespace shardwise {

/// Words in the wrong place of a command line whose choices ("activation-checkpoint:full")
/// end the flags of the job: a flag of the job behind one, and a choice that is made twice.
/// Source: tyro's subcommands, of which each has flags of its own alone behind it.
std::vector<Finding> misplaced_words(const Framework& framework,
                                     const Configuration& configuration);

/// Values behind flags that take none, and several behind those that take one: argparse refuses
/// them. bash makes several of a text in quotes that stands in an array: ${ARGS[@]} without quotes.
std::vector<Finding> unexpected_words(const Framework& framework,
                                      const Configuration& configuration);

}  // namespace shardwise
