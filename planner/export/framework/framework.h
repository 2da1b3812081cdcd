#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/export/framework/conditions.h"
#include "planner/spec/plan/names.h"

namespace shardwise {

/// Kind of value that a setting takes.
enum class SettingKind : std::uint8_t {
  on,  // a bare word of a command line: there or not
  boolean,
  integer,
  number,
  text,
  texts,  // of a command line several words, of a file a list; here with "," between
};

/// Where a setting stands.
enum class SettingPlace : std::uint8_t {
  configuration,  // a word of the command line, a key of the file: "zero_optimization.stage"
  environment,    // a variable
  script,         // an argument of the training script, beside a file of keys: only read
};

/// Content of a bucket whose size a setting states.
enum class BucketOf : std::uint8_t { gradients, weights };

/// A setting takes negative integers too.
inline constexpr std::int64_t kNoLeast = std::numeric_limits<std::int64_t>::min();

/// Value of "auto" where it follows from the model: factor x hidden_size ^ power.
struct AutoOfModel {
  double factor = 1;
  int power = 1;
  Conditions when;  // of settings; where it does not hold, nobody fills it in
};

/// One setting of a framework.
struct SettingSpec {
  std::string name;
  SettingKind kind = SettingKind::text;
  SettingPlace place = SettingPlace::configuration;
  std::optional<std::string> by_default;  // the framework's; empty: it has none
  std::string field;                      // of the plan, "" where a choice decides
  /// The plan's word for a value and the framework's, where they differ. Of several for one word of
  /// the plan the first is written. "*": others of the setting's kind are the same in both.
  std::vector<std::pair<std::string, std::string>> words;
  Conditions when;  // plans for which the setting has a meaning
  /// Models of which its value changes neither memory nor time: a value that is not the model's is
  /// kept. Nothing: of no model.
  std::optional<Conditions> numeric_when;
  bool always = false;        // written also where it is the default
  bool only_read = false;     // another setting says the same and is written
  bool only_written = false;  // of the plan's value; another setting says the field
  /// It says the field to a reader, and is kept as it stands: the training script decides else.
  bool kept = false;
  /// Values that no plan has, and what to give for each. "*", the last, for all.
  std::vector<std::pair<std::string, std::string>> instead;
  std::string fills;                // of a script's argument: the setting that it is "auto" of
  std::vector<std::string> among;   // the values that the framework takes; empty: not known
  std::int64_t least = kNoLeast;    // that it takes, of an integer
  std::optional<std::string> open;  // the value that leaves the field open: "-1", what is left
  /// Part of the job's memory or time that the plan lacks where it is stated and not the
  /// default.
  std::string unpriced;
  /// Value that the plan has instead where `assumed_when` holds; "" for nothing.
  std::string assumed;
  Conditions assumed_when;
  std::vector<std::pair<std::string, std::string>> spellings;  // a value, another spelling of it
  Values states;  // of a script's switch: settings that it states before the file where it is on
  std::optional<BucketOf> bucket_of;    // its value is the elements of a bucket
  std::optional<AutoOfModel> of_model;  // what "auto" is, which transformers fills in
  /// Kinds that a key's value may not be, among "null", "text", "number", "boolean", "list".
  std::vector<std::string> refuses;
  std::string meaning;
  std::string source;
};

/// One of the alternatives: what the plan says, and the settings that say the same.
struct Option {
  Conditions plan;
  Values settings;
};
/// Settings that say something together: of the options the first that holds is taken.
struct Choice {
  std::string name;
  /// Settings that a configuration may not state and mean something else: of `decides` the option
  /// that holds has the value, of `knows` at least one option.
  std::vector<std::string> decides;
  std::vector<std::string> knows;
  std::vector<Option> options;
};

/// Field that the framework does in one way only, or in some: of a plan that has another, the first
/// is exported.
struct Limit {
  Conditions when;
  std::string field;
  std::vector<std::string> values;  // "@dp" is the value of the field dp
  std::string because;              // empty: the plan's other values are the same thing
  std::vector<std::string> script;  // lines of a training script by which it has the plan's value
};

/// Plan that no setting and no substitute can say.
struct Refusal {
  Conditions when;
  std::string because;
  std::string fix;
};

/// Field that the framework leaves to the training script: no setting says it, the export does.
struct ScriptField {
  std::string field;
  std::string says;
};

/// Something that is wrong with a configuration.
struct CheckRule {
  enum class Kind : std::uint8_t {
    refused,  // by the framework, at its start
    changed,  // it changes the setting and goes on
    silent,   // it goes on as told, and the run is wrong or slow
  };
  std::string name;  // of its examples in tests/invalid/framework
  Kind kind = Kind::refused;
  bool after_parsing = false;  // refused when groups or the model are made, not by the parser
  Conditions when;
  std::vector<std::string> product;  // and what these multiply to, settings and numbers, is not
  std::string equals;                // this
  bool contradiction = false;        // no plan follows from it: import refuses it, too
  bool divides = false;              // or does not divide it
  std::string at;                    // the setting that the problem is said of
  std::string or_at;                 // where that one is not stated; empty: no other one
  std::string says;
  std::string fix;
  std::string source;
};

template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<CheckRule::Kind> = {"refused", "changed",
                                                                              "silent"};

/// Settings that a name brings with it, as a torchtitan recipe does.
struct Preset {
  Conditions when;
  Values settings;
};

/// Functions that make a configuration, which the framework has by name.
struct Recipes {
  std::string module;  // the setting that names the module: "--module"
  std::string recipe;  // and the function in it: "--config"
  /// A module and one of its functions; "" for any, of a module whose functions are not known.
  std::vector<std::pair<std::string, std::string>> known;
  /// A model and a recipe that trains it, which only a reader is told: of the plan's model another
  /// recipe is written.
  std::vector<std::pair<std::string, std::string>> trains;
};

/// A key of a framework's file that is named otherwise than the flag which says the same.
struct KeyOfFlag {
  std::string key;
  std::string value;  // a switch is on where the key has it; empty: the key has the flag's value
  std::string flag;
  bool negated = false;  // the flag turns the key off
};

/// How a framework is told.
enum class ConfigurationForm : std::uint8_t {
  arguments,  // --name value …
  overrides,  // --section.key value …, and section:choice behind them
  json,
  yaml,
  script,  // a JSON file that a training script beside it reads
};

/// Settings and rules of a framework that people train with: configs/frameworks/NAME.json.
/// docs/frameworks.md has the same as tables.
struct Framework {
  std::string name;
  std::string label;
  std::string version;  // that the facts were read from
  std::string package;  // by which Python knows the version that is installed
  std::string code;     // repository and commit, or package and version
  ConfigurationForm form = ConfigurationForm::arguments;
  std::string file;                  // of its settings, in an exported folder
  std::string program;               // that torchrun starts
  std::vector<std::string> modules;  // of a script: Python files that it imports from beside it
  std::string launcher;              // "torchrun", or "accelerate"
  std::vector<std::string> engines;  // that it is planned with, the first where a plan has another
  std::vector<std::string> marks;    // settings by which a configuration is known as its own
  std::vector<std::string> known_keys;  // of its file besides the settings: "aio", "zero.stage"
  std::vector<std::string> sections;    // of its file, whose unknown keys are refused; "" the top
  std::vector<std::string> loose_sections;  // whose unknown keys it takes silently
  /// Sections with what the framework puts before a key in it: "fsdp_config" and "fsdp_".
  std::vector<std::pair<std::string, std::string>> prefixes;
  std::vector<std::string> objects;       // keys of its file that nothing but an object may be
  bool takes_unknown = false;             // silently, at the top of its file
  std::vector<std::string> removed_keys;  // of its file, that it refuses since a version
  /// Arguments that it refuses since a version, and what says the same now.
  std::vector<std::pair<std::string, std::string>> removed_flags;
  // Of a framework of flags that reads a file too:
  std::vector<KeyOfFlag> keys;
  std::vector<std::string> keys_without_flags;  // that it knows in the file alone
  std::vector<std::string> switches;            // of known_keys: flags that take no word
  std::vector<std::string> several_words;       // of known_keys and settings: that take several
  std::string file_flag;                        // names the file, beside which no flag counts
  std::vector<SettingSpec> settings;
  std::vector<Choice> choices;
  std::vector<Preset> presets;
  Recipes recipes;
  std::vector<Limit> limits;
  std::vector<Limit> unstated;  // what a configuration means that does not state a field
  std::vector<Refusal> refusals;
  std::vector<ScriptField> by_script;
  /// Who refuses a configuration of which two settings state different values of one field, as
  /// "transformers/integrations/deepspeed.py"; empty: nobody, and one of the two counts.
  std::string two_values_source;
  std::vector<CheckRule> rules;
  /// Lines of code by what of a configuration they read, where neither a setting nor a rule has
  /// one: "unknown" keys that it refuses, "silent" ones that it takes, "removed" ones, a "module"
  /// and a "recipe" of it, the "order" of words, and the "file" beside which no flag counts.
  Values sources;

  /// The line of code for one of these; the whole code where the file has none.
  const std::string& source_of(const std::string& what) const;
  const SettingSpec* find(const std::string& setting) const;
  /// Files of the training script that an export has beside its settings; none but of a script.
  std::vector<std::string> scripts() const;
  /// Whether it is told on a command line, and not by a file of keys.
  bool takes_words() const {
    return form == ConfigurationForm::arguments || form == ConfigurationForm::overrides;
  }
};

}  // namespace shardwise
