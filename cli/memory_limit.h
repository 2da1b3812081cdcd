#pragma once

#include <optional>

#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Gives --memory-limit to every verb that answers a question itself. After the verbs are added.
void add_memory_limits(CLI::App& app);

/// Memory of this machine that the question of `app`'s verb may take: the flag's value, else
/// usual_memory_limit(). Nothing for a verb without the flag.
/// \pre parsed
Result<std::optional<Bytes>> asked_memory_limit(const CLI::App& app);

}  // namespace shardwise::cli
