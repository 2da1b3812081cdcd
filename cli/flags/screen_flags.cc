#include "cli/flags/screen_flags.h"

#include <CLI/CLI.hpp>

namespace shardwise::cli {

void add_screen_flags(CLI::App& verb, ScreenFlags& screen) {
  verb.add_flag("--long", screen.whole, "Print every table, not the first screen")->group("Output");
  verb.add_flag("--json", screen.json, "Print everything as JSON for a program")->group("Output");
}

}  // namespace shardwise::cli
