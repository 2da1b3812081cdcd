#pragma once

#include <optional>

#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Limits of what a question may take of this machine.
struct Limits {
  Bytes memory{0};
  Seconds time{0};
};

/// Gives --memory-limit and --time-limit to every verb that answers a question itself. After the
/// verbs are added.
void add_limits(CLI::App& app);

/// Those of the question of `app`'s verb: the flags' values, else usual_memory_limit() and
/// kUsualTimeLimit. Nothing for a verb without the flags.
/// \pre parsed
Result<std::optional<Limits>> asked_limits(const CLI::App& app);

}  // namespace shardwise::cli
