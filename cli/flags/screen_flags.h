#pragma once

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Amount that a verb prints.
struct ScreenFlags {
  bool whole = false;  // --long: every table, not the first screen
  bool json = false;   // --json: the same facts for a program
};
void add_screen_flags(CLI::App& verb, ScreenFlags& screen);

}  // namespace shardwise::cli
