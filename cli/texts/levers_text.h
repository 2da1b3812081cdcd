#pragma once

#include <string>
#include <vector>

#include "answers/helpful_changes.h"

namespace shardwise::cli {

/// Most helpful changes as a table; those that help by less than kLeastHelp are named below it.
/// \param changes  the most helpful first
std::string levers_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                        const std::vector<sim::HelpfulChange>& changes, bool colour);

/// Changes as above for a program, schema "shardwise.levers/1".
std::string levers_json(const sim::PlanAnswer& answer,
                        const std::vector<sim::HelpfulChange>& changes);

}  // namespace shardwise::cli
