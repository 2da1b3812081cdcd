#include "planner/export/launch/torchtitan_script.h"

#include <algorithm>
#include <optional>
#include <string>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

/// The value of an exported variable, with the place of its word.
ShellWord variable_of(const ShellCommand& command, const std::string& name,
                      const std::string& by_default) {
  const std::string begin = name + "=";
  ShellWord found{by_default, command.words.front().line, command.words.front().column};
  for (const ShellWord& each : command.environment) {
    if (!each.text.starts_with(begin) || each.text.size() == begin.size()) continue;
    found = {each.text.substr(begin.size()), each.line, each.column};
  }
  return found;
}

}  // namespace

bool is_torchtitan_script(std::string_view word) {
  return word.substr(word.rfind('/') + 1) == "run_train.sh";
}

TorchtitanScript torchtitan_script(const ShellCommand& command) {
  TorchtitanScript made;
  const bool starts = std::ranges::any_of(
      command.words, [](const ShellWord& each) { return is_torchtitan_script(each.text); });
  if (!starts) return made;
  const auto add = [&](const char* flag, const ShellWord& value) {
    made.arguments.push_back({flag, value.line, value.column});
    made.arguments.push_back(value);
  };
  const ShellWord old = variable_of(command, "CONFIG_FILE", "");
  if (!old.text.empty()) {  // of versions before 0.3
    add("--job.config_file", old);
    return made;
  }
  add("--module", variable_of(command, "MODULE", "llama3"));
  add("--config", variable_of(command, "CONFIG", "llama3_debugmodel"));
  const std::optional<std::int64_t> ranks = parse_integer(variable_of(command, "NGPU", "8").text);
  if (ranks && *ranks >= 1 && *ranks <= kMostGpus) made.ranks = *ranks;
  return made;
}

}  // namespace shardwise
