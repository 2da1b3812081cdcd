#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/shell/shell_text.h"

namespace shardwise::test {

using Texts = std::vector<std::string>;

inline Texts texts_of(const std::vector<ShellWord>& words) {
  Texts texts;
  for (const ShellWord& each : words) texts.push_back(each.text);
  return texts;
}

inline ShellCommand read(const std::string& script) {
  const Result<ShellCommand> made = read_shell(script, "run.sh");
  EXPECT_TRUE(made.ok()) << script.substr(0, 500) << "\n" << to_string(made.problems());
  return made.ok() ? *made : ShellCommand();
}

/// The words behind "run" in the last line of a script.
inline Texts words_of(const std::string& script) {
  Texts texts = texts_of(read(script).words);
  if (!texts.empty()) texts.erase(texts.begin());
  return texts;
}

inline std::string problem_of(const std::string& script) {
  const Result<ShellCommand> made = read_shell(script, "run.sh");
  return made.ok() ? "" : to_string(made.problems());
}

inline std::string notes_of(const std::string& script) {
  const ShellCommand made = read(script);
  return made.notes.empty() ? "" : to_string(made.notes);
}

}  // namespace shardwise::test
