#include "planner/export/framework/setting_values.h"

#include <fmt/format.h>

#include <cstdint>

#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

/// Of a setting's words, the last one: all that have none.
constexpr const char* kAnyOther = "*";

}  // namespace

std::optional<std::string> canonical(SettingKind kind, const std::string& text) {
  switch (kind) {
    case SettingKind::on:
    case SettingKind::boolean:
      if (text == "true" || text == "True") return "true";
      if (text == "false" || text == "False") return "false";
      return std::nullopt;
    case SettingKind::integer:
      if (const std::optional<std::int64_t> integer = parse_integer(text)) {
        return std::to_string(*integer);
      }
      return std::nullopt;
    case SettingKind::number:
      if (const std::optional<double> number = parse_number(text)) {
        return fmt::format("{}", *number);
      }
      return std::nullopt;
    case SettingKind::text:
    case SettingKind::texts:
      break;
  }
  return text;
}

const char* noun_of(SettingKind kind) {
  switch (kind) {
    case SettingKind::on:
    case SettingKind::boolean:
      return "true or false";
    case SettingKind::integer:
      return "an integer";
    case SettingKind::number:
      return "a number";
    case SettingKind::text:
    case SettingKind::texts:
      break;
  }
  return "a text";
}

bool names_variable(const std::string& word) { return word.find('$') != std::string::npos; }

std::optional<std::string> theirs(const SettingSpec& spec, const std::string& ours) {
  if (spec.words.empty()) return ours;
  for (const auto& [our_word, their_word] : spec.words) {
    if (our_word == ours) return their_word;
    if (our_word == kAnyOther && canonical(spec.kind, ours) == ours) return ours;
  }
  return std::nullopt;
}

std::optional<std::string> ours(const SettingSpec& spec, const std::string& theirs) {
  if (spec.words.empty()) return theirs;
  for (const auto& [our_word, their_word] : spec.words) {
    if (their_word == theirs) return our_word;
    if (their_word == kAnyOther) return theirs;
  }
  return std::nullopt;
}

}  // namespace shardwise
