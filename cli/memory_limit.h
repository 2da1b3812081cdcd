#pragma once

#include <string>

#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Adds --memory-limit. \param text  takes it as given
void add_memory_limit(CLI::App& verb, std::string& text);

/// What a question may take of this machine's memory. Without a text that is a quarter of what the
/// machine has, or of what ulimit -v leaves this process where that is less.
Result<Bytes> read_memory_limit(const std::string& text);

}  // namespace shardwise::cli
