#include "planner/export/shell/shell_patterns.h"

#include <algorithm>
#include <utility>

namespace shardwise {

bool ShellPattern::Step::takes(char c) const {
  const bool among = std::ranges::any_of(
      ranges, [&](const Range& range) { return range.first <= c && c <= range.last; });
  return among != negated;
}

std::optional<ShellPattern> ShellPattern::read(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (!std::ranges::all_of(text, is_ascii)) return std::nullopt;
  ShellPattern made;
  const auto one = [&](char c) { made.steps_.push_back({false, false, {{c, c}}}); };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && at + 1 < text.size()) {
      one(text[++at]);
    } else if (c == '*') {
      if (made.steps_.empty() || !made.steps_.back().star) {
        made.steps_.push_back({true, false, {}});
      }
    } else if (c == '?') {
      made.steps_.push_back({false, true, {}});
    } else if (c == '(') {
      return std::nullopt;
    } else if (c == '[') {
      if (text.find("[:", at) != std::string_view::npos) return std::nullopt;
      if (!made.read_set(text, at)) one(c);
    } else {
      one(c);
    }
  }
  return made;
}

/// Reads [a-z]; `at` is then its end. \returns whether it has one
bool ShellPattern::read_set(std::string_view text, std::size_t& at) {
  std::size_t next = at + 1;
  Step set;
  if (next < text.size() && (text[next] == '!' || text[next] == '^')) {
    set.negated = true;
    ++next;
  }
  const auto character = [&] {
    if (text[next] == '\\' && next + 1 < text.size()) ++next;
    return text[next++];
  };
  for (bool first = true; next < text.size(); first = false) {
    if (text[next] == ']' && !first) {
      steps_.push_back(std::move(set));
      at = next;
      return true;
    }
    Range range;
    range.first = character();
    range.last = range.first;
    if (next + 1 < text.size() && text[next] == '-' && text[next + 1] != ']') {
      ++next;
      range.last = character();
    }
    set.ranges.push_back(range);
  }
  return false;
}

/// Calls accept with the end of every match that begins at `from`, the shortest first.
template <class Accept>
void ShellPattern::run(std::string_view text, std::size_t from, const Accept& accept) const {
  std::vector<char> now(steps_.size() + 1, 0);  // places in the pattern
  std::vector<char> then(steps_.size() + 1, 0);
  const auto enter = [&](std::vector<char>& places, std::size_t place) {
    places[place] = 1;
    while (place < steps_.size() && steps_[place].star) places[++place] = 1;
  };
  enter(now, 0);
  for (std::size_t at = from;; ++at) {
    if (now.back() != 0) accept(at);
    if (at == text.size() || std::ranges::find(now, 1) == now.end()) return;
    std::ranges::fill(then, 0);
    for (std::size_t place = 0; place < steps_.size(); ++place) {
      if (now[place] == 0) continue;
      if (steps_[place].star) {
        enter(then, place);
      } else if (steps_[place].takes(text[at])) {
        enter(then, place + 1);
      }
    }
    std::swap(now, then);
  }
}

bool ShellPattern::matches(std::string_view text) const { return longest(text, 0) == text.size(); }

std::optional<std::size_t> ShellPattern::longest(std::string_view text, std::size_t from) const {
  std::optional<std::size_t> end;
  run(text, from, [&](std::size_t at) { end = at; });
  return end;
}

std::string ShellPattern::without_beginning(std::string_view text, bool longest) const {
  std::optional<std::size_t> end;
  run(text, 0, [&](std::size_t at) {
    if (longest || !end) end = at;
  });
  return std::string(text.substr(end.value_or(0)));
}

std::string ShellPattern::without_end(std::string_view text, bool longest) const {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t from = longest ? i : text.size() - i;
    if (this->longest(text, from) == text.size()) return std::string(text.substr(0, from));
  }
  return std::string(text);
}

std::string ShellPattern::replaced(std::string_view text, std::string_view with, bool all) const {
  std::string made;
  std::size_t at = 0;
  bool more = true;
  while (at < text.size()) {
    const std::optional<std::size_t> end = more ? longest(text, at) : std::nullopt;
    if (end && *end > at) {
      made += with;
      at = *end;
      more = all;
    } else {
      made += text[at++];
    }
  }
  return made;
}

}  // namespace shardwise
