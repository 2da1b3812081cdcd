#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// A setting of a framework that says nothing of a plan: learning rates, paths, what is not known.
/// It is a flag with words behind it, a key with a value, or a choice ("checkpoint:full").
struct KeptSetting {
  std::string name;                // "--lr"; of a key its keys, see kept_keys()
  std::vector<std::string> words;  // what stands behind a flag; none for a bare one
  std::string value;               // of a key: JSON on one line (json_line()); of a flag empty
  friend bool operator==(const KeptSetting&, const KeptSetting&) = default;
};

/// The settings of the configuration that a plan was imported from which the plan does not have.
/// Export writes them back to the same framework; nothing else reads them.
struct KeptSettings {
  std::string framework;  // "megatron-lm"; empty: the plan was not imported
  std::vector<KeptSetting> settings;
  friend bool operator==(const KeptSettings&, const KeptSettings&) = default;
};

/// The keys that a name stands for, outermost first: "a.b" is b in a. A name that begins with "/"
/// is a JSON pointer: "/a.b/c" is c in the key "a.b". A flag is one.
std::vector<std::string> kept_keys(const std::string& name);
/// The name of the value at a JSON pointer: keys with dots between, or the pointer where that would
/// mean other keys.
std::string kept_name(const std::string& pointer);

/// "--" and a letter or digit, then letters, digits, ".", "_", ":" and "-": no shell reads anything
/// into it.
bool is_flag_name(std::string_view name);
/// "name:value" of such characters, a word by which torchtitan chooses.
bool is_choice_name(std::string_view name);

/// Problem of kept settings, besides what their framework says.
struct KeptProblem {
  std::size_t at = 0;  // the setting
  std::string message;
  std::string hint;
};
std::vector<KeptProblem> problems_of(const std::vector<KeptSetting>& settings);

}  // namespace shardwise
