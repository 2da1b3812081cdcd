#include "planner/spec/plan/kept_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";

bool is_letter_or_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// Source: RFC 6901, section 4.
std::vector<std::string> keys_of_pointer(std::string_view pointer) {
  std::vector<std::string> keys = split_at(pointer.substr(1), '/');
  for (std::string& key : keys) {
    std::string plain;
    for (std::size_t i = 0; i < key.size(); ++i) {
      const bool escaped = key[i] == '~' && i + 1 < key.size();
      plain += !escaped ? key[i] : key[++i] == '1' ? '/' : '~';
    }
    key = std::move(plain);
  }
  return keys;
}

/// "--pp 8" behind "--lr 1" would be another flag; -5 and -.5 are numbers.
bool is_like_a_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

std::string what_is_wrong(const KeptSetting& setting) {
  const std::string name = "\"" + shown(setting.name) + "\"";
  if (setting.name.empty()) return "has no name";
  if (has_control_character(setting.name)) return name + " has a control character";
  if (setting.name.starts_with('-')) {
    if (!is_flag_name(setting.name)) return name + " is no flag";
    if (!setting.value.empty()) return name + " is a flag: it has words, no value";
    const bool several = setting.words.size() > 1;
    if (several && std::ranges::any_of(setting.words, is_like_a_flag)) {
      return name + " has a word that is a flag of its own";
    }
    return "";
  }
  if (setting.value.empty()) return is_choice_name(setting.name) ? "" : name + " has no value";
  return setting.words.empty() ? "" : name + " has a value and words";
}

}  // namespace

std::vector<std::string> kept_keys(const std::string& name) {
  if (name.starts_with('/')) return keys_of_pointer(name);
  if (name.starts_with('-')) return {name};
  return split_at(name, '.');
}

std::string kept_name(const std::string& pointer) {
  const std::vector<std::string> keys = keys_of_pointer(pointer);
  std::string name;
  for (const std::string& key : keys) name += (&key == &keys.front() ? "" : ".") + key;
  return kept_keys(name) == keys && !name.starts_with('-') ? name : pointer;
}

bool is_flag_name(std::string_view name) {
  return name.size() > 2 && name.starts_with("--") && is_letter_or_digit(name[2]) &&
         name.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

bool is_choice_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < name.size() &&
         is_letter_or_digit(name[0]) &&
         name.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

std::vector<KeptProblem> problems_of(const std::vector<KeptSetting>& settings) {
  std::vector<KeptProblem> problems;
  std::vector<std::pair<std::vector<std::string>, std::size_t>> sorted;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    std::string wrong = what_is_wrong(settings[i]);
    if (!wrong.empty()) problems.push_back({i, std::move(wrong), "take it out"});
    sorted.emplace_back(kept_keys(settings[i].name), i);
  }
  // In order, what is inside a setting follows it at once.
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const auto& [outer, first] = sorted[i - 1];
    const auto& [inner, second] = sorted[i];
    const auto mismatch = std::ranges::mismatch(outer, inner);
    if (mismatch.in1 != outer.end()) continue;
    problems.push_back(
        {second,
         outer == inner ? fmt::format("{} twice", shown(settings[second].name))
                        : fmt::format("{} is inside {}, which is kept too",
                                      shown(settings[second].name), shown(settings[first].name)),
         "keep one of them"});
  }
  return problems;
}

}  // namespace shardwise
