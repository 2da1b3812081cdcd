#include "answers/layout_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"

namespace shardwise::sim {
namespace {

constexpr std::string_view kUnknown = "{0} is no column";
constexpr std::string_view kMisspelt = "{0} is no column (did you mean {1}?)";
constexpr std::string_view kNoNumber = "{0} needs a value, as {0}<=8";
constexpr std::string_view kNoWords = "{0} needs a value, as {0}:none";
constexpr std::string_view kOperator = "{0}: use < <= > >= = != or :";
constexpr std::string_view kWords = "{0} is a word: use {0}:… or {0}!=…";
constexpr std::string_view kNumber = "{0}: {1} is not a number";

std::string problem(std::string_view text, std::string_view subject, std::string_view other = {}) {
  return fmt::format(fmt::runtime(text), subject, other);
}

/// What a text of hostile length or bytes is in a message.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 24;
  std::string shown(text.substr(0, kMost));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || static_cast<unsigned char>(c) >= 0x80; }, '?');
  return shown;
}

std::string unknown(std::string_view word) {
  std::vector<std::string> known;
  for (const PlanColumn& column : plan_columns()) known.emplace_back(column.key);
  for (const PlanTrait& trait : plan_traits()) known.emplace_back(trait.key);
  const std::optional<std::string> near = nearest(word, known);
  return near ? problem(kMisspelt, quoted(word), *near) : problem(kUnknown, quoted(word));
}

}  // namespace

std::string compared_words(const PlanColumn& column, const PricedLayout& row) {
  const std::string text = column.text(row);
  if (text == "-" || text.empty()) return "none";
  return text;
}

bool LayoutFilter::holds(const Condition& condition, const PricedLayout& row) {
  const Compare compare = condition.compare;
  if (condition.trait != nullptr) return condition.trait->holds(row) == (compare == Compare::equal);
  if (condition.column->words) {
    const std::string words = compared_words(*condition.column, row);
    if (compare == Compare::has) return words.find(condition.words) != std::string::npos;
    return (words == condition.words) == (compare == Compare::equal);
  }
  const double number = condition.column->number(row);
  switch (compare) {
    case Compare::less:
      return number < condition.number;
    case Compare::at_most:
      return number <= condition.number;
    case Compare::more:
      return number > condition.number;
    case Compare::at_least:
      return number >= condition.number;
    case Compare::equal:
    case Compare::has:
      return number == condition.number;
    case Compare::unequal:
      return number != condition.number;
  }
  return true;
}

bool LayoutFilter::keeps(const PricedLayout& row) const {
  return std::ranges::all_of(conditions_, [&](const Condition& each) { return holds(each, row); });
}

/// \returns what is wrong, or an empty text
std::string LayoutFilter::read(std::string_view word, Condition& condition) {
  // Longer operators before those that they begin with.
  static constexpr std::array<std::pair<std::string_view, Compare>, 8> kOperators = {{
      {"<=", Compare::at_most},
      {">=", Compare::at_least},
      {"!=", Compare::unequal},
      {"==", Compare::equal},
      {"<", Compare::less},
      {">", Compare::more},
      {"=", Compare::equal},
      {":", Compare::has},
  }};
  const std::size_t at = word.find_first_of("<>=!:", 1);
  if (at == std::string_view::npos) {
    const bool opposite = word.front() == '!';
    const std::string_view name = word.substr(opposite ? 1 : 0);
    const auto traits = plan_traits();
    const auto trait = std::ranges::find(traits, name, &PlanTrait::key);
    if (trait == traits.end()) {
      const PlanColumn* const column = find_plan_column(name);
      if (column == nullptr) return unknown(name);
      return problem(column->words ? kNoWords : kNoNumber, name);
    }
    condition.trait = &*trait;
    condition.compare = opposite ? Compare::unequal : Compare::equal;
    return "";
  }
  const std::string_view key = word.substr(0, at);
  condition.column = find_plan_column(key);
  if (condition.column == nullptr) return unknown(key);
  const auto* const found = std::ranges::find_if(
      kOperators, [&](const auto& each) { return word.substr(at).starts_with(each.first); });
  if (found == kOperators.end()) return problem(kOperator, quoted(word));
  condition.compare = found->second;
  const std::string_view value = word.substr(at + found->first.size());
  if (condition.column->words) {
    const bool fitting = condition.compare == Compare::has || condition.compare == Compare::equal ||
                         condition.compare == Compare::unequal;
    if (!fitting) return problem(kWords, key);
    if (value.empty()) return problem(kNoWords, key);
    condition.words = value == "-" ? "none" : value;
    return "";
  }
  const std::optional<double> number = parse_number(value);
  if (!number) return problem(kNumber, key, value.empty() ? "nothing" : quoted(value));
  condition.number = *number;
  return "";
}

ParsedFilter parse_filter(std::string_view text) {
  ParsedFilter parsed;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return parsed;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    LayoutFilter::Condition condition;
    parsed.problem = LayoutFilter::read(word, condition);
    if (!parsed.problem.empty()) return parsed;
    parsed.filter.conditions_.push_back(std::move(condition));
  }
}

std::array<FilterProblem, 7> filter_problems() {
  return {{{"unknown", kUnknown},
           {"misspelt", kMisspelt},
           {"no_number", kNoNumber},
           {"no_words", kNoWords},
           {"operator", kOperator},
           {"words", kWords},
           {"number", kNumber}}};
}

}  // namespace shardwise::sim
