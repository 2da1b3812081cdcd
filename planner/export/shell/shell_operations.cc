// What ${NAME%…}, ${NAME/…/…}, ${#NAME} and ${NAME:…} make of a variable.

#include <algorithm>
#include <utility>

#include "planner/export/shell/shell_arithmetic.h"
#include "planner/export/shell/shell_patterns.h"
#include "planner/export/shell/shell_variables.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

using ValueTexts = std::vector<std::string>;

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string in_case(std::string text, bool upper) {
  const char first = upper ? 'a' : 'A';
  for (char& c : text) {
    if (c >= first && c < first + 26) c = static_cast<char>(c ^ 0x20);
  }
  return text;
}

/// From and count of a part of `size`, as bash takes negative ones; nothing for none.
std::optional<std::pair<std::size_t, std::size_t>> range_of(std::int64_t from,
                                                            std::optional<std::int64_t> count,
                                                            std::int64_t size, bool list) {
  if (from < 0) from += size;
  if (from < 0) return std::pair<std::size_t, std::size_t>(0, 0);
  from = std::min(from, size);
  std::int64_t end = size;
  if (count && *count < 0) {
    if (list) return std::nullopt;
    end = size + *count;
    if (end < from) return std::nullopt;
  } else if (count && *count < size - from) {
    end = from + *count;
  }
  return std::pair(static_cast<std::size_t>(from), static_cast<std::size_t>(end - from));
}

}  // namespace

std::optional<std::int64_t> ShellVariables::number(const std::string& text) const {
  return shell_arithmetic(text, [&](const std::string& name) -> std::optional<std::int64_t> {
    const ShellWord* word = find(name);
    return word == nullptr ? std::nullopt : parse_integer(word->text);
  });
}

std::optional<std::string> ShellVariables::pattern(const std::vector<ShellPart>& parts, int line) {
  std::string made;
  for (const ShellPart& part : parts) {
    const std::string text = joined({part}, line);
    if (shardwise::is_unknown(text)) return std::nullopt;
    for (const char c : text) {
      if (part.quoted) made += '\\';
      made += c;
    }
  }
  return made;
}

std::optional<ValueTexts> ShellVariables::slice(const ShellPart& part,
                                                const std::vector<const ShellWord*>& values,
                                                int line) {
  const std::string text = joined(part.value, line);
  if (shardwise::is_unknown(text)) return std::nullopt;
  const std::size_t colon = text.find(':');
  const std::optional<std::int64_t> from = number(text.substr(0, colon));
  std::optional<std::int64_t> count;
  if (colon != std::string::npos) {
    count = number(text.substr(colon + 1));
    if (!count) return std::nullopt;
  }
  if (!from) return std::nullopt;
  const bool arguments = part.text == "@" || part.text == "*";
  if (arguments || part.subscript == "@" || part.subscript == "*") {
    if (arguments && *from <= 0) return std::nullopt;  // with $0, the script's name
    const auto range = range_of(*from - (arguments ? 1 : 0), count,
                                static_cast<std::int64_t>(values.size()), true);
    if (!range) return std::nullopt;
    ValueTexts made;
    for (std::size_t i = 0; i < range->second; ++i) made.push_back(values[range->first + i]->text);
    return made;
  }
  if (values.empty()) return ValueTexts{};
  const std::string& value = values.front()->text;
  const auto range = range_of(*from, count, static_cast<std::int64_t>(value.size()), false);
  if (!range || !is_ascii(value)) return std::nullopt;
  return ValueTexts{value.substr(range->first, range->second)};
}

std::optional<ValueTexts> ShellVariables::changed(const ShellPart& part,
                                                  const std::vector<const ShellWord*>& values,
                                                  int line) {
  const std::string& operation = part.operation;
  const bool open = std::ranges::any_of(
      values, [](const ShellWord* each) { return shardwise::is_unknown(each->text); });
  const bool all =
      part.subscript == "@" || part.subscript == "*" || part.text == "@" || part.text == "*";
  if (operation == "length" && all) return ValueTexts{std::to_string(values.size())};
  if (open) return std::nullopt;
  if (operation == ":") return slice(part, values, line);
  if (operation == "length") {
    const std::string value = values.empty() ? "" : values.front()->text;
    return is_ascii(value) ? std::optional(ValueTexts{std::to_string(value.size())}) : std::nullopt;
  }
  const char first = operation.front();
  const std::optional<std::string> text = pattern(part.value, line);
  const std::string with = joined(part.with, line);
  // & in a replacement is what was found.
  if (!text || shardwise::is_unknown(with) || with.find('&') != std::string::npos) {
    return std::nullopt;
  }
  ValueTexts made;
  if (first == '^' || first == ',') {
    if (!text->empty() || operation.size() != 2) return std::nullopt;
    for (const ShellWord* each : values) {
      if (!is_ascii(each->text)) return std::nullopt;
      made.push_back(in_case(each->text, first == '^'));
    }
    return made;
  }
  const std::optional<ShellPattern> wanted = ShellPattern::read(*text);
  if (!wanted) return std::nullopt;
  for (const ShellWord* each : values) {
    const std::string& value = each->text;
    constexpr std::size_t kMostWork = 10'000'000;
    const std::size_t work = (value.size() + 1) * (value.size() + 1) * (wanted->size() + 1);
    if (value.size() > 10'000 || work > kMostWork || !is_ascii(value)) return std::nullopt;
    trouble_.charge(work / 1000, line);
    if (trouble_.stops()) return std::nullopt;
    const bool twice = operation.size() == 2 && operation[1] == first;
    if (first == '#') {
      made.push_back(wanted->without_beginning(value, twice));
    } else if (first == '%') {
      made.push_back(wanted->without_end(value, twice));
    } else if (text->empty() && operation.size() == 2 && !twice) {
      made.push_back(operation == "/#" ? with + value : value + with);
    } else if (text->empty()) {
      made.push_back(value);
    } else if (operation == "/#") {
      const std::optional<std::size_t> end = wanted->longest(value, 0);
      made.push_back(end ? with + value.substr(*end) : value);
    } else if (operation == "/%") {
      const std::string kept = wanted->without_end(value, true);
      made.push_back(wanted->longest(value, kept.size()) == value.size() ? kept + with : value);
    } else if (value.empty()) {
      return std::nullopt;
    } else {
      made.push_back(wanted->replaced(value, with, twice));
    }
  }
  return made;
}

}  // namespace shardwise
