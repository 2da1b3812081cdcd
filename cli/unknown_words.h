#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Problems of the words that neither the command nor its verb took, one line each, with what the
/// user may have meant. Empty when every word was taken.
/// \pre app has parsed a command line, or failed to
std::vector<std::string> unknown_words(const CLI::App& app);

/// Why no verb was found in a command line that CLI11 accepted.
std::string missing_verb(const CLI::App& app);

}  // namespace shardwise::cli
