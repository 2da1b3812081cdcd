#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"
#include "planner/export/configuration/configuration.h"
#include "planner/spec/text/diagnostic.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Input of `import` and `check`.
struct ConfigurationFlags {
  std::vector<std::string> words;  // files, or guarded words of a command
  std::string framework;           // empty: known by the settings
  std::string installed;           // version of it where the job runs; empty: not stated
};
/// Guards the words behind the "--" of import and check from CLI11, which splits "[1,2]", drops
/// "[]" and refuses "", and puts them before files and flags, where no flag takes them for its
/// value. read_configurations() removes the guard.
void guard_command(std::vector<std::string>& words);
std::string unguarded(const std::string& word);

void add_configuration_flags(CLI::App& verb, ConfigurationFlags& flags);

/// The sentence of a version that the framework's facts were not read from, as a paragraph; "" for
/// none.
Result<std::string> version_paragraph(const ConfigurationFlags& flags, const Framework& framework);

/// Parts of a configuration that are not read, a paragraph each; "" for none.
std::string notes_text(const Configuration& configuration);

/// As refuse(), behind the notes: what is not read may be why.
ExitCode refuse_configuration(const Configuration& configuration, const Diagnostics& problems);

/// The configuration that files and the words of one command have together.
Result<Configuration> read_configurations(const ConfigurationFlags& flags);

}  // namespace shardwise::cli
