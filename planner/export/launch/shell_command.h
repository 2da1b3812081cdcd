#pragma once

#include <string>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A word of a command and where it stands.
struct ShellWord {
  std::string text;
  int line = 0;  // 1-based; 0 of a command line
  int column = 0;
  bool pattern = false;  // of file names, which bash looks for: data/*.bin
  /// Parts whose value nobody knows, as they are written: "$MORE".
  std::vector<std::string> unknown = {};  // NOLINT(*-redundant-member-init): GCC asks for it
};

/// A file that a script writes before it starts the job.
struct WrittenFile {
  std::string name;
  std::string text;
  int line = 0;
};

/// A file of commands that a script reads by source, or may read.
struct SourcedFile {
  std::string name;
  int line = 0;
  bool exports = false;  // whatever it sets: between set -a and set +a
};

/// Command that starts a job: its words, and the variables that are exported to it.
struct ShellCommand {
  std::vector<ShellWord> words;
  std::vector<ShellWord> environment;  // "NAME=VALUE"
  std::vector<ShellWord> directives;   // words of #SBATCH lines
  std::vector<WrittenFile> files;      // by cat, tee and echo
  std::vector<SourcedFile> sourced;    // none of which is read
  std::vector<std::string> unread;     // variables that parts set which are not read
  Diagnostics notes;                   // what was not read, and may decide something
};

}  // namespace shardwise
