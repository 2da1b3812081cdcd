#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace shardwise::cli {

/// The verbs in the order of the help, but for those all of whose words go to another
/// program.
inline std::vector<std::string> names_of_verbs() {
  CLI::App app;
  Run run;
  add_verbs(app, run);
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->get_prefix_command()) names.push_back(verb->get_name());
  }
  return names;
}

}  // namespace shardwise::cli
