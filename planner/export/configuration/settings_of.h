#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A configuration as its framework takes it.
struct Settings {
  Values values;  // of all settings; what has no default is not there
  std::map<std::string, const GivenSetting*> given;  // those that it states
  std::vector<const GivenSetting*> unknown;          // that say nothing that the table reads
  std::vector<const GivenSetting*> of_script;  // arguments of a command beside a file that counts
  std::vector<const GivenSetting*> of_file;    // keys of a file that no flag says
  std::vector<std::string> open;               // by name: "auto", or of a variable
  std::vector<const GivenSetting*> again;      // flags that stand there before with another value
};

/// A setting's name as the framework's file has it, and whether it is negated ("--a.no_b"). Keys of
/// Megatron-LM's YAML are flags; tyro takes "-" for "_", and "no" before a switch.
struct TableName {
  std::string name;
  bool negated = false;
  std::string on_for;  // the value of a key for which a switch is on; empty: the key has its value
};
/// A name that the file does not have is returned without what tyro ignores.
/// \param word  the value of a key, which may say of which flag it is
TableName table_name(const Framework& framework, const std::string& name,
                     const std::string& word = "");
/// The same, of a setting with its value.
TableName table_name(const Framework& framework, const GivenSetting& given);

/// Whether a setting of the table says nothing of a plan.
bool says_nothing(const Framework& framework, const SettingSpec& spec);

/// The setting that states a field by its own value: one that has the field, or an argument of the
/// training script in a choice. Nothing where none does.
const GivenSetting* given_of_field(const Framework& framework, const Settings& settings,
                                   const std::string& field);

/// Adds what presets and defaults say of settings that are not there.
void add_defaults(const Framework& framework, Values& values);

/// The settings by the framework's names, with presets and defaults, each in one spelling.
/// \pre configuration outlives the result
/// \returns them, or every value of a wrong kind
Result<Settings> settings_of(const Framework& framework, const Configuration& configuration);

}  // namespace shardwise
