#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shardwise::cli {

/// The manual page of `app` and its verbs in roff, from the texts of their help.
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace shardwise::cli
