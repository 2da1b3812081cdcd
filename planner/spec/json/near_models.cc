#include "planner/spec/json/near_models.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "planner/spec/text/nearest.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostNearModels = 4;
constexpr std::size_t kFewestLetters = 3;  // that a name may be found by
constexpr std::array<std::string_view, 8> kVariants = {"-it", "-pt",   "-instruct", "-chat",
                                                       "-hf", "-base", "-dpo",      "-sft"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "llama" and "31" of "llama-3.1-8b". A number with a unit is a size: "llama" and "" of
/// "llama-13b", "gpt-neox" and "" of "gpt-neox-20b".
struct Generation {
  std::string family;
  std::string version;
};

Generation generation_of(std::string_view name) {
  const auto digit = static_cast<std::size_t>(std::ranges::find_if(name, is_digit) - name.begin());
  std::string_view family = name.substr(0, digit);
  while (family.ends_with('-') || family.ends_with('.')) family.remove_suffix(1);
  Generation found{std::string(family), {}};
  std::size_t at = digit;
  while (at < name.size() && (is_digit(name[at]) || name[at] == '.')) ++at;
  const bool size = at < name.size() && std::isalpha(static_cast<unsigned char>(name[at])) != 0;
  if (size) return found;
  for (const char c : name.substr(digit, at - digit)) {
    if (c != '.') found.version += c;
  }
  return found;
}

/// The same but for a slip. A word of one letter tells generations apart: "deepseek-v", "-r".
bool same_family(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto letter = [](const std::string& family) {
    const std::size_t size = family.size();
    return size > 1 && family[size - 2] == '-' ? family.back() : ' ';
  };
  return letter(a) == letter(b) && nearest(a, {b}).has_value();
}

/// A name as the catalogue spells it and without its owner; then the same with ever fewer suffixes
/// of variants.
std::vector<std::string> spellings_of(std::string_view name) {
  name.remove_prefix(std::min(name.rfind('/') + 1, name.size()));
  std::vector<std::string> spellings{""};
  for (const char c : name) {
    spellings.back() +=
        c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view variant : kVariants) {
      const std::string& last = spellings.back();
      if (cut || !last.ends_with(variant)) continue;
      spellings.push_back(last.substr(0, last.size() - variant.size()));
      cut = true;
    }
  }
  return spellings;
}

/// Words of letters alone: "mistral" and "large" of "mistral-large-2".
std::vector<std::string> letter_words(std::string_view name) {
  std::vector<std::string> words{""};
  for (const char c : name) {
    if (c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase_if(words, [](const std::string& word) {
    return word.empty() ||
           !std::ranges::all_of(word, [](unsigned char c) { return std::isalpha(c) != 0; });
  });
  return words;
}

}  // namespace

bool names_model(std::string_view word, std::string_view model) {
  const std::vector<std::string> spellings = spellings_of(word);
  return std::ranges::find(spellings, model) != spellings.end();
}

std::vector<std::string> near_models(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> spellings = spellings_of(word);
  for (const std::string& each : spellings) {
    if (std::ranges::find(known, each) != known.end()) return {each};
  }
  const std::string& plain = spellings.back();
  if (plain.empty()) return {};
  const Generation asked = generation_of(plain);
  std::vector<std::string> same;  // of that generation, or of one whose family is a slip away
  for (const std::string& name : known) {
    const Generation each = generation_of(name);
    const bool related = each.version == asked.version && same_family(each.family, asked.family);
    const bool part = asked.version.empty() && plain.size() >= kFewestLetters &&
                      name.find(plain) != std::string::npos;
    if (related || part) same.push_back(name);
  }
  std::vector<std::string> near;
  for (std::vector<std::string> rest = same; near.size() < kMostNearModels;) {
    const auto next = nearest(plain, rest);
    if (!next) break;
    near.push_back(*next);
    std::erase(rest, *next);
  }
  const std::vector<std::string> words = letter_words(plain);
  for (const std::string& name : same) {
    if (near.size() == kMostNearModels) break;
    const bool has_words = std::ranges::all_of(
        words, [&](const std::string& each) { return name.find(each) != std::string::npos; });
    if (has_words && std::ranges::find(near, name) == near.end()) near.push_back(name);
  }
  return near;
}

}  // namespace shardwise
