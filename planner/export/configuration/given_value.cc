#include "planner/export/configuration/given_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/export/framework/setting_values.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

bool is_switch(const SettingSpec& spec) {
  return spec.kind == SettingKind::on || spec.kind == SettingKind::boolean;
}

/// "null", "text", "number", "boolean" or "list"; "" of an object.
std::string_view kind_name(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return "boolean";
    case JsonValue::Kind::integer:
    case JsonValue::Kind::number:
      return "number";
    case JsonValue::Kind::string:
      return "text";
    case JsonValue::Kind::array:
      return "list";
    case JsonValue::Kind::object:
      break;
  }
  return "";
}

/// Whether a value of a file is of a kind that the setting may not have.
bool is_of_wrong_kind(const SettingSpec& spec, const GivenSetting& given) {
  if (!given.value) return false;
  const bool is_text = spec.kind == SettingKind::text || spec.kind == SettingKind::texts;
  if ((given.list || given.object) && !is_text) return true;
  return std::ranges::find(spec.refuses, kind_name(*given.value)) != spec.refuses.end();
}

/// Whether a key stands in a file that a script writes.
bool in_script(const GivenSetting& given) {
  const auto ends = [&](const char* ending) { return given.file.ends_with(ending); };
  return !ends(".json") && !ends(".yaml") && !ends(".yml");
}

/// Whether a word behind the flag is refused: argparse's store_true and tyro's switches take none.
bool takes_no_word(const Framework& framework, const SettingSpec& spec) {
  if (spec.place != SettingPlace::configuration) return false;
  const bool is_override = framework.form == ConfigurationForm::overrides;
  return spec.kind == SettingKind::on || (is_override && spec.kind == SettingKind::boolean);
}

/// What Python's int() makes of a text: digits with a sign before them and single underscores
/// between them, no exponent and no fraction. \returns nothing where it takes none
std::optional<std::string> python_integer(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  constexpr std::string_view kDigits = "0123456789";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  std::string made;
  if (text.starts_with('-')) made = "-";
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  bool after_digit = false;
  for (const char c : text) {
    const bool is_digit = kDigits.find(c) != std::string_view::npos;
    if (!is_digit && !(c == '_' && after_digit)) return std::nullopt;
    if (is_digit) made += c;
    after_digit = is_digit;
  }
  return after_digit ? std::optional(made) : std::nullopt;
}

/// What pydantic and accelerate's str_to_bool take for true and false in a file, in any case.
/// Source: accelerate/utils/environment.py:59
std::optional<std::string> truth(std::string text) {
  constexpr std::array<std::string_view, 6> kTrue = {"y", "yes", "t", "true", "on", "1"};
  constexpr std::array<std::string_view, 6> kFalse = {"n", "no", "f", "false", "off", "0"};
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (std::ranges::find(kTrue, text) != kTrue.end()) return "true";
  if (std::ranges::find(kFalse, text) != kFalse.end()) return "false";
  return std::nullopt;
}

/// \returns the value in one spelling; nothing where it is not of the setting's kind
std::optional<std::string> spelled(const SettingSpec& spec, const GivenSetting& given,
                                   const std::string& text) {
  if (is_of_wrong_kind(spec, given)) return std::nullopt;
  const bool is_word = !given.value || given.value->kind == JsonValue::Kind::string;
  if (spec.kind == SettingKind::integer && is_word) {
    const std::optional<std::string> digits = python_integer(text);
    return digits ? canonical(spec.kind, *digits) : std::nullopt;
  }
  if (is_switch(spec) && given.value) return truth(text);
  std::optional<std::string> value = canonical(spec.kind, text);
  for (const auto& [usual, other] : spec.spellings) {
    if (value == other) value = usual;
  }
  return value;
}

}  // namespace

std::optional<std::string> value_of(const Framework& framework, const SettingSpec& spec,
                                    const GivenSetting& given, bool negative,
                                    Diagnostics& problems) {
  // A variable that nobody knows, behind a switch, is no value of it.
  const bool bare = given.words.empty() || given.words.front().starts_with('$');
  if (is_switch(spec) && bare && !given.value) return negative ? "false" : "true";
  const std::string text = fmt::format("{}", fmt::join(given.words, ","));
  if (!given.value && takes_no_word(framework, spec)) {
    const std::size_t dot = given.name.rfind('.') + 1;
    problems.push_back({given.file, given.line, given.column, given.path,
                        fmt::format("takes no value, and {} stands behind it", shown(text)),
                        spec.kind == SettingKind::on
                            ? fmt::format("leave {} out", shown(text))
                            : fmt::format("{0} turns it on, {1}no-{2} off", given.name,
                                          given.name.substr(0, dot), given.name.substr(dot))});
    return std::nullopt;
  }
  // No value, where the framework has none of its own either; an argument would be that word.
  const bool takes_none = framework.form != ConfigurationForm::arguments && !spec.by_default;
  if (text == "None" && takes_none) return std::nullopt;
  const std::optional<std::string> value = spelled(spec, given, text);
  const bool is_variable = names_variable(text) && (!given.value || in_script(given));
  if (!value && is_variable) {
    problems.push_back(
        {given.file, given.line, given.column, given.path,
         fmt::format("nobody knows {}, which should be {}", shown(text), noun_of(spec.kind)),
         fmt::format("state it behind --, as in -- NAME=1 bash {}", shown(given.file))});
    return std::nullopt;
  }
  if (!value || (given.words.empty() && !given.list)) {
    problems.push_back({given.file, given.line, given.column, given.path,
                        text.empty() ? "has no value"
                                     : fmt::format("{} is not {}", shown(text), noun_of(spec.kind)),
                        fmt::format("{} takes {}", spec.name, noun_of(spec.kind))});
    return std::nullopt;
  }
  if (negative) return *value == "true" ? "false" : "true";
  return value;
}

std::optional<Diagnostic> value_of_section(const Framework& framework, const GivenSetting& given,
                                           const std::string& name) {
  if (!given.value || given.object) return std::nullopt;
  const auto in_it = std::ranges::find_if(framework.settings, [&](const SettingSpec& spec) {
    return spec.name.size() > name.size() && spec.name.starts_with(name) &&
           spec.name[name.size()] == '.';
  });
  const bool has_keys = in_it != framework.settings.end();
  const bool is_object = std::ranges::find(framework.objects, name) != framework.objects.end();
  if (!has_keys && !is_object) return std::nullopt;
  return Diagnostic{
      given.file,
      given.line,
      given.column,
      given.path,
      fmt::format("{} has keys and no value", shown(name)),
      has_keys ? fmt::format("an object, as {{\"{}\": ...}}", in_it->name.substr(name.size() + 1))
               : "an object"};
}

std::optional<Diagnostic> keys_of_value(const Framework& framework, const GivenSetting& given,
                                        const std::string& name) {
  if (!given.value || framework.takes_words()) return std::nullopt;
  for (const SettingSpec& spec : framework.settings) {
    const bool takes_keys = spec.kind == SettingKind::text || spec.kind == SettingKind::texts;
    if (takes_keys || !name.starts_with(spec.name + ".")) continue;
    return Diagnostic{given.file,
                      given.line,
                      given.column,
                      given.path,
                      fmt::format("{} has keys, and takes {}", spec.name, noun_of(spec.kind)),
                      fmt::format("{} for {}", noun_of(spec.kind), spec.name)};
  }
  return std::nullopt;
}

std::optional<Diagnostic> null_of(const Framework& framework, const GivenSetting& given) {
  const SettingSpec* spec = framework.find(given.name);
  const bool is_object =
      std::ranges::find(framework.objects, given.name) != framework.objects.end();
  if (!is_object && (spec == nullptr || !is_of_wrong_kind(*spec, given))) return std::nullopt;
  return Diagnostic{given.file,
                    given.line,
                    given.column,
                    given.path,
                    fmt::format("null is not {}", is_object ? "an object" : noun_of(spec->kind)),
                    "leave the key out"};
}

}  // namespace shardwise
