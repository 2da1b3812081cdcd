#include "planner/export/configuration/settings_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "planner/export/configuration/given_value.h"
#include "planner/export/framework/setting_values.h"
#include "planner/spec/json/json_line.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// "auto", which transformers fills in from its own arguments.
bool is_auto(const SettingSpec& spec, const GivenSetting& given) {
  return spec.kind != SettingKind::text && given.words == std::vector<std::string>{"auto"};
}

/// Whether a word behind a flag or of a key has a variable that nobody knows, or a list has no
/// word, and it says nothing that a plan has: then it is kept as text, of whatever kind its values
/// are.
bool is_open_text(const Framework& framework, const SettingSpec& spec, const GivenSetting& given) {
  const bool is_empty_list = spec.kind == SettingKind::texts && given.words.empty();
  const bool unknown = is_empty_list || std::ranges::any_of(given.words, names_variable);
  const bool is_key = given.value && given.value->kind != JsonValue::Kind::string;
  return !is_key && unknown && says_nothing(framework, spec);
}

/// Whether it is a key that the framework knows in its file alone.
bool is_key_without_flag(const Framework& framework, const GivenSetting& given) {
  const auto& keys = framework.keys_without_flags;
  const std::string last = given.name.substr(given.name.rfind('.') + 1);
  return given.value && std::ranges::find(keys, last) != keys.end();
}

/// What arguments of a training script say.
class ScriptArguments {
 public:
  ScriptArguments(const Framework& framework, Settings& made, Diagnostics& problems)
      : framework_(framework), made_(made), problems_(problems) {}

  void take(const GivenSetting& each) {
    std::string name = each.name;
    if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '-', '_');
    const SettingSpec* spec = framework_.find(name);
    const bool known = spec != nullptr && spec->place == SettingPlace::script;
    if (!known && take_words(name, each)) return;
    if (!known && take_object(name, each)) return;
    Diagnostics ignored;
    const auto value = known ? value_of(framework_, *spec, each, false, ignored) : std::nullopt;
    const auto& words = known ? spec->among : std::vector<std::string>();
    if (value && !words.empty() && std::ranges::find(words, *value) == words.end()) {
      problems_.push_back({each.file, each.line, each.column, each.path,
                           fmt::format("{} is none of its words", shown(*value)),
                           fmt::format("one of {}", fmt::join(words, ", "))});
      return;
    }
    if (!value) {
      made_.of_script.push_back(&each);
    } else if (!spec->states.empty()) {
      if (*value == "true") stating_.push_back({spec, &each, *value});
    } else if (spec->fills.empty()) {
      made_.values[spec->name] = *value;
      made_.given[spec->name] = &each;
    } else {
      filling_.push_back({spec, &each, *value});
    }
  }

  /// States what switches state, and fills "auto" in; a switch that is not there is off. Another
  /// argument beside a value of the file changes nothing.
  void fill() {
    std::map<std::string, const Filling*> stated;
    for (const Filling& each : stating_) {
      for (const auto& [name, value] : each.spec->states) {
        const auto [other, is_first] = stated.emplace(name, &each);
        if (!is_first && other->second->spec->states.at(name) != value) {
          problems_.push_back(
              {each.given->file, each.given->line, each.given->column, each.given->path,
               fmt::format("cannot stand beside {}", other->second->spec->name), "one of the two"});
        }
        std::erase(made_.open, name);
        made_.values[name] = value;
        made_.given[name] = each.given;
      }
    }
    if (filling_.empty()) return;
    for (const SettingSpec& spec : framework_.settings) {
      const auto at = std::ranges::find(made_.open, spec.fills);
      if (spec.fills.empty() || at == made_.open.end()) continue;
      const auto found =
          std::ranges::find_if(filling_, [&](const Filling& each) { return each.spec == &spec; });
      made_.open.erase(at);
      std::erase_if(made_.unknown,
                    [&](const GivenSetting* each) { return each->name == spec.fills; });
      made_.values[spec.fills] = found == filling_.end() ? "false" : found->value;
      if (found == filling_.end()) continue;
      made_.given[spec.fills] = found->given;
      filling_.erase(found);
    }
    for (const Filling& each : filling_) made_.of_script.push_back(each.given);
  }

 private:
  /// Takes words that are settings each: --fsdp "full_shard auto_wrap". Others are problems.
  bool take_words(const std::string& name, const GivenSetting& each) {
    const bool has_words = std::ranges::any_of(framework_.settings, [&](const SettingSpec& spec) {
      return spec.place == SettingPlace::script && !spec.states.empty() &&
             spec.name.starts_with(name + ".");
    });
    if (!has_words) return false;
    std::string text = fmt::format("{}", fmt::join(each.words, " "));
    std::ranges::replace(text, ',', ' ');
    for (std::string& word : split_at(text, ' ')) {
      if (word.empty()) continue;
      if (word == "True") word = "true";
      if (word == "False" || word == "false") continue;
      const SettingSpec* spec = framework_.find(name + "." + word);
      if (spec == nullptr) {
        problems_.push_back({each.file, each.line, each.column, each.path,
                             fmt::format("no plan has {}", shown(word)),
                             "full_shard or shard_grad_op, with auto_wrap"});
      } else {
        stating_.push_back({spec, &each, "true"});
      }
    }
    return true;
  }

  /// Takes what is known of a JSON object that an argument has for its word:
  /// --accelerator_config '{"gradient_accumulation_kwargs": {"sync_each_batch": true}}'.
  bool take_object(const std::string& name, const GivenSetting& each) {
    if (each.words.size() != 1 || !each.words.front().starts_with('{')) return false;
    const Result<JsonValue> object = parse_json(each.words.front(), each.path);
    return object && take_members(name, *object, each);
  }
  bool take_members(const std::string& name, const JsonValue& object, const GivenSetting& each) {
    bool taken = false;
    for (const JsonMember& member : object.members) {
      const std::string inner = name + "." + member.key;
      const SettingSpec* spec = framework_.find(inner);
      if (spec != nullptr && spec->place == SettingPlace::script) {
        const std::string text = json_line(member.value);
        const std::optional<std::string> value = canonical(spec->kind, text);
        if (!value) continue;
        made_.values[inner] = *value;
        made_.given[inner] = &each;
        taken = true;
      } else if (take_members(inner, member.value, each)) {
        taken = true;
      }
    }
    return taken;
  }

  struct Filling {
    const SettingSpec* spec;
    const GivenSetting* given;
    std::string value;
  };
  const Framework& framework_;
  Settings& made_;
  Diagnostics& problems_;  // of words that an argument does not take
  std::vector<Filling> filling_;
  std::vector<Filling> stating_;
};

}  // namespace

bool says_nothing(const Framework& framework, const SettingSpec& spec) {
  if (spec.kept) return true;
  if (!spec.field.empty() || spec.place != SettingPlace::configuration) return false;
  return std::ranges::none_of(framework.choices, [&](const Choice& choice) {
    return std::ranges::any_of(
        choice.options, [&](const Option& option) { return option.settings.contains(spec.name); });
  });
}

TableName table_name(const Framework& framework, const GivenSetting& given) {
  return table_name(framework, given.name, given.words.size() == 1 ? given.words.front() : "");
}

TableName table_name(const Framework& framework, const std::string& name, const std::string& word) {
  const auto has = [&](const std::string& key) {
    return framework.find(key) != nullptr ||
           std::ranges::find(framework.known_keys, key) != framework.known_keys.end();
  };
  if (has(name)) return {name, false, ""};
  for (const auto& [section, prefix] : framework.prefixes) {
    if (!name.starts_with(section + ".")) continue;
    const std::string whole =
        name.substr(0, section.size() + 1) + prefix + name.substr(section.size() + 1);
    if (has(whole)) return {whole, false, ""};
  }
  if (framework.form == ConfigurationForm::arguments && !name.starts_with('-')) {
    const std::string last = name.substr(name.rfind('.') + 1);
    for (const KeyOfFlag& each : framework.keys) {
      if (each.key != last || (!each.value.empty() && each.value != word)) continue;
      return {each.flag, each.negated, each.value};
    }
    return {flag_of_key(name), false, ""};
  }
  if (framework.form != ConfigurationForm::overrides) return {name, false, ""};
  constexpr std::string_view kDashes = "--";
  if (!name.starts_with(kDashes)) {
    std::string choice = name;
    std::ranges::replace(choice, '_', '-');
    return {has(choice) ? choice : name, false, ""};
  }
  std::string own = name.substr(kDashes.size());
  std::ranges::replace(own, '-', '_');
  own.insert(0, kDashes);
  const std::size_t dot = own.find('.');
  const std::string section =
      dot == std::string::npos ? std::string(kDashes) : own.substr(0, dot + 1);
  const std::string key = own.substr(section.size());
  const bool negated =
      !has(section + key) && key.starts_with("no_") && has(section + key.substr(3));
  return {section + (negated ? key.substr(3) : key), negated, ""};
}

const GivenSetting* given_of_field(const Framework& framework, const Settings& settings,
                                   const std::string& field) {
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    if (given == settings.given.end()) continue;
    if (spec.field == field) return given->second;
    if (spec.place != SettingPlace::script) continue;
    for (const Choice& choice : framework.choices) {
      for (const Option& option : choice.options) {
        const auto said = option.settings.find(spec.name);
        if (said == option.settings.end() || said->second != settings.values.at(spec.name)) {
          continue;
        }
        const bool says = std::ranges::find(option.plan, field, &Clause::name) != option.plan.end();
        if (says) return given->second;
      }
    }
  }
  return nullptr;
}

void add_defaults(const Framework& framework, Values& values) {
  for (const Preset& preset : framework.presets) {
    if (!holds(preset.when, values)) continue;
    values.insert(preset.settings.begin(), preset.settings.end());
  }
  for (const SettingSpec& spec : framework.settings) {
    if (spec.by_default) values.emplace(spec.name, *spec.by_default);
  }
}

Result<Settings> settings_of(const Framework& framework, const Configuration& configuration) {
  Settings made;
  Diagnostics problems;
  const auto take = [&](const GivenSetting& each, bool environment) {
    const TableName own = table_name(framework, each);
    const SettingSpec* spec = framework.find(own.name);
    if (spec == nullptr && is_key_without_flag(framework, each)) {
      made.of_file.push_back(&each);
      return;
    }
    if (spec == nullptr && !environment) {
      std::optional<Diagnostic> problem = value_of_section(framework, each, own.name);
      if (!problem) problem = keys_of_value(framework, each, own.name);
      if (problem) {
        problems.push_back(*std::move(problem));
        return;
      }
    }
    if (spec == nullptr || (spec->place == SettingPlace::environment) != environment) {
      if (!environment) made.unknown.push_back(&each);
      return;
    }
    const bool is_variable = environment && std::ranges::any_of(each.words, names_variable);
    if (each.open || is_variable) {
      made.open.push_back(spec->name);
      return;
    }
    const bool of_text = !environment && is_open_text(framework, *spec, each);
    if (of_text || is_auto(*spec, each)) {
      made.open.push_back(spec->name);
      made.unknown.push_back(&each);
      return;
    }
    const bool is_on = !own.on_for.empty();
    const std::optional<std::string> value =
        is_on ? std::optional<std::string>("true")
              : value_of(framework, *spec, each, own.negated, problems);
    if (!value) return;
    // Of keys that turn one switch on, another may leave it off.
    if (each.value && spec->kind == SettingKind::on && *value == "false" &&
        made.given.contains(spec->name)) {
      return;
    }
    if (environment) std::erase(made.open, spec->name);  // what stands later counts
    const auto before = made.given.find(spec->name);
    const bool is_flag = !environment && !each.value;
    if (is_flag && before != made.given.end() && made.values.at(spec->name) != *value) {
      made.again.push_back(&each);
    }
    made.values[spec->name] = *value;
    made.given[spec->name] = &each;
  };
  const GivenSetting* names_file = nullptr;
  bool has_file = false;
  for (const GivenSetting& each : configuration.settings) {
    if (!framework.file_flag.empty() && each.name == framework.file_flag) names_file = &each;
    has_file = has_file || each.value.has_value();
  }
  if (names_file != nullptr && !has_file) {
    return Diagnostic{names_file->file,
                      names_file->line,
                      names_file->column,
                      names_file->path,
                      fmt::format("{} takes all settings from {}, and no flag", framework.label,
                                  shown(fmt::format("{}", fmt::join(names_file->words, " ")))),
                      "give that file too"};
  }
  ScriptArguments script(framework, made, problems);
  for (const GivenSetting& each : configuration.settings) {
    // Beside a file of keys the arguments of a command are its script's.
    if (each.value || (framework.takes_words() && names_file == nullptr)) {
      take(each, false);
    } else {
      script.take(each);
    }
  }
  script.fill();
  for (const GivenSetting& each : configuration.environment) take(each, true);
  for (const SettingSpec& spec : framework.settings) {
    if (spec.place != SettingPlace::environment || made.given.contains(spec.name)) continue;
    const auto& unread = configuration.unread;
    const bool may_be_set =
        !configuration.sourced.empty() || std::ranges::find(unread, spec.name) != unread.end();
    if (may_be_set) made.open.push_back(spec.name);
  }
  for (const GivenSetting& each : configuration.nulls) {
    if (made.given.contains(table_name(framework, each.name).name)) continue;  // by a flag
    if (std::optional<Diagnostic> problem = null_of(framework, each)) {
      problems.push_back(*std::move(problem));
    }
  }
  if (!problems.empty()) return problems;
  const bool has_none = std::ranges::none_of(made.given, [&](const auto& each) {
    return framework.find(each.first)->place != SettingPlace::script;
  });
  if (has_none && !(made.unknown.empty() && made.of_script.empty() && made.given.empty())) {
    return Diagnostic{configuration.file,
                      0,
                      0,
                      "",
                      fmt::format("has no setting of {}", framework.label),
                      "--from says of which framework it is"};
  }
  add_defaults(framework, made.values);
  return made;
}

}  // namespace shardwise
