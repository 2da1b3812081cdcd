#include "gui/models/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gui/models/columns.h"
#include "planner/spec/nearest.h"
#include "planner/spec/number.h"

namespace shardwise::view {
namespace {

constexpr std::array<std::string_view, 4> kTraits = {"fits", "risk", "over", "front"};

/// What a text of hostile length or bytes is in a message.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 24;
  std::string shown(text.substr(0, kMost));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' '; }, '?');
  return shown;
}

std::string unknown(std::string_view word) {
  std::vector<std::string> known;
  for (const Column& column : columns()) known.emplace_back(column.key);
  for (const std::string_view trait : kTraits) known.emplace_back(trait);
  const std::optional<std::string> near = nearest(word, known);
  return fmt::format("{} is no column{}", quoted(word),
                     near ? fmt::format(" (did you mean {}?)", *near) : "");
}

}  // namespace

bool Filter::holds(const Condition& condition, const LayoutRow& row) {
  const bool wanted = condition.compare == Compare::equal;
  switch (condition.trait) {
    case Trait::fits:
      return (row.fit == Fit::fits) == wanted;
    case Trait::risk:
      return (row.fit == Fit::at_risk) == wanted;
    case Trait::over:
      return (row.fit == Fit::does_not_fit) == wanted;
    case Trait::front:
      return row.front == wanted;
    case Trait::none:
      break;
  }
  const Column& column = columns()[condition.column];
  if (column.words) return (column.text(row) == condition.word) == wanted;
  const double number = column.number(row);
  switch (condition.compare) {
    case Compare::less:
      return number < condition.number;
    case Compare::at_most:
      return number <= condition.number;
    case Compare::more:
      return number > condition.number;
    case Compare::at_least:
      return number >= condition.number;
    case Compare::equal:
      return number == condition.number;
    case Compare::unequal:
      return number != condition.number;
  }
  return true;
}

bool Filter::keeps(const LayoutRow& row) const {
  return std::ranges::all_of(conditions_, [&](const Condition& each) { return holds(each, row); });
}

ParsedFilter parse_filter(std::string_view text) {
  using Compare = Filter::Compare;
  // Longer operators before those that they begin with.
  static constexpr std::array<std::pair<std::string_view, Compare>, 8> kOperators = {{
      {"<=", Compare::at_most},
      {">=", Compare::at_least},
      {"!=", Compare::unequal},
      {"==", Compare::equal},
      {"<", Compare::less},
      {">", Compare::more},
      {"=", Compare::equal},
      {":", Compare::equal},
  }};
  ParsedFilter parsed;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    Filter::Condition condition;
    const std::size_t at = word.find_first_of("<>=!:", 1);
    if (at == std::string_view::npos) {
      const bool opposite = word.front() == '!';
      const std::string_view name = word.substr(opposite ? 1 : 0);
      const auto* const trait = std::ranges::find(kTraits, name);
      if (trait == kTraits.end()) {
        parsed.problem =
            find_column(name) ? fmt::format("{0} needs a value, as {0}<=8", name) : unknown(name);
        return parsed;
      }
      condition.trait = static_cast<Filter::Trait>(trait - kTraits.begin() + 1);
      condition.compare = opposite ? Compare::unequal : Compare::equal;
    } else {
      const std::string_view key = word.substr(0, at);
      const std::optional<std::size_t> column = find_column(key);
      if (!column) {
        parsed.problem = unknown(key);
        return parsed;
      }
      const auto* const found = std::ranges::find_if(
          kOperators, [&](const auto& each) { return word.substr(at).starts_with(each.first); });
      if (found == kOperators.end()) {
        parsed.problem = fmt::format("{}: use < <= > >= = != or :", quoted(word));
        return parsed;
      }
      const std::string_view value = word.substr(at + found->first.size());
      condition.column = *column;
      condition.compare = found->second;
      if (columns()[*column].words) {
        if (found->second != Compare::equal && found->second != Compare::unequal) {
          parsed.problem = fmt::format("{} is a word: use {}:… or {}!=…", key, key, key);
          return parsed;
        }
        condition.word = value == "none" ? "-" : std::string(value);
      } else {
        const std::optional<double> number = parse_number(value);
        if (!number) {
          parsed.problem =
              fmt::format("{}: {} is not a number", key, value.empty() ? "nothing" : quoted(value));
          return parsed;
        }
        condition.number = *number;
      }
    }
    parsed.filter.conditions_.push_back(std::move(condition));
  }
  return parsed;
}

}  // namespace shardwise::view
