// Quotes and expansions of ShellLexer.

#include <optional>
#include <utility>

#include "planner/export/shell/shell_escapes.h"
#include "planner/export/shell/shell_lexer.h"
#include "planner/export/shell/shell_variables.h"

namespace shardwise {
namespace {

constexpr std::string_view kSpecial = "@*#?$!-0123456789";

/// Counts how deep a reader is in itself.
class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

}  // namespace

void ShellLexer::single_quoted(ShellToken& made) {
  step();
  made.parts.emplace_back().quoted = true;
  const std::size_t end = text_.find('\'', at_);
  if (end == std::string_view::npos) return fail("a quote that ' opens is not closed");
  made.parts.back().text = text_.substr(at_, end - at_);
  while (at_ <= end) step();
}

void ShellLexer::double_quoted(std::vector<ShellPart>& parts) {
  step();
  if (look() == '"') parts.emplace_back().quoted = true;  // "" is a word too
  expanded(parts, '"');
  if (!more()) return fail("a quote that \" opens is not closed");
  step();
}

void ShellLexer::expanded(std::vector<ShellPart>& parts, char end) {
  const std::string_view escaped = end == '"' ? "$`\"\\" : "$`\\";
  while (more() && (end == '\0' || look() != end)) {
    if (look() == '\\' && look(1) == '\n') {
      for (int i = 0; i < 2; ++i) {
        const char c = step();
        if (keeps_lines_) add(parts, c, true);
      }
    } else if (look() == '\\' && escaped.find(look(1)) != std::string::npos) {
      step();
      add(parts, step(), true);
    } else if (look() == '$') {
      dollar(parts, true);
    } else if (look() == '`') {
      backticks(parts, true);
    } else {
      add(parts, step(), true);
    }
  }
}

void ShellLexer::dollar(std::vector<ShellPart>& parts, bool quoted) {
  const std::size_t from = at_;
  step();
  if (look() == '(') {
    const bool sum = look(1) == '(';
    skip_parentheses();
    const bool closed = at_ >= 2 && text_[at_ - 2] == ')';
    return unknown(parts, quoted, from,
                   sum && closed ? ShellPart::Kind::arithmetic : ShellPart::Kind::unknown);
  }
  if (look() == '{') return braced(parts, quoted, from);
  if (look() == '\'' && !quoted) return ansi_c_quoted(parts, from);
  if (look() == '"' && !quoted) return;  // translated, in English as it is written
  std::string name;
  if (kSpecial.find(look()) != std::string_view::npos && at_ < text_.size()) {
    name = step();
  } else {
    while (in_shell_names(look())) name += step();
  }
  if (name.empty()) return add(parts, '$', true);
  unknown(parts, quoted, from, ShellPart::Kind::variable);
  parts.back().text = std::move(name);
}

void ShellLexer::ansi_c_quoted(std::vector<ShellPart>& parts, std::size_t from) {
  skip_ansi_c_quotes();
  if (trouble_.stops()) return;
  const std::string_view raw = text_.substr(from, at_ - from);
  std::optional<std::string> made = ansi_c_text(raw.substr(2, raw.size() - 3));
  if (!made) return unknown(parts, false, from);
  parts.emplace_back().quoted = true;
  parts.back().text = *std::move(made);
}

void ShellLexer::skip_ansi_c_quotes() {
  step();
  while (more() && look() != '\'') {
    if (step() == '\\' && more()) step();
  }
  if (!more()) return fail("a quote that $' opens is not closed");
  step();
}

/// ${…}: what is behind the name is read even where it is not known, to find the end.
void ShellLexer::braced(std::vector<ShellPart>& parts, bool quoted, std::size_t from) {
  const Nested nested(depth_);
  if (depth_ > kMostShellNesting) return fail("expansions in expansions, more than 100 deep");
  step();
  ShellPart made;
  made.kind = ShellPart::Kind::variable;
  const bool counts = look() == '#' && look(1) != '}';
  if (counts) step();
  while (in_shell_names(look())) made.text += step();
  if (made.text.empty() && (look() == '@' || look() == '*' || look() == '#')) made.text = step();
  if (look() == '[') {
    step();
    while (more() && look() != ']' && look() != '}') made.subscript += step();
    if (look() == ']') step();
  }
  operation(made, quoted);
  if (counts && !made.operation.empty()) made.kind = ShellPart::Kind::unknown;
  if (counts) made.operation = "length";
  if (made.text.empty()) made.kind = ShellPart::Kind::unknown;
  if (!more()) return fail("a variable that ${ opens is not closed");
  step();
  made.quoted = quoted;
  made.raw = text_.substr(from, at_ - from);
  parts.push_back(std::move(made));
}

/// What stands behind the name in ${…}.
void ShellLexer::operation(ShellPart& made, bool quoted) {
  if (look() == '}') return;
  const bool colon = look() == ':';
  const char sign = look(colon ? 1 : 0);
  if (sign == '-' || sign == '=' || sign == '+' || sign == '?') {
    if (colon) made.operation += step();
    made.operation += step();
    return value(made.value, quoted);
  }
  constexpr std::string_view kDoubled = "#%/^,";
  if (!colon && kDoubled.find(look()) == std::string_view::npos) {
    made.kind = ShellPart::Kind::unknown;
    return value(made.value, quoted);
  }
  made.operation += step();
  const char first = made.operation.front();
  if (!colon && look() == first) made.operation += step();
  if (first != '/') return value(made.value, false);
  if (made.operation == "/" && (look() == '#' || look() == '%')) made.operation += step();
  value(made.value, false, '/');
  if (look() != '/') return;
  step();
  value(made.with, false);
}

/// What stands behind ":-" to the closing brace. In double quotes an apostrophe is no quote.
void ShellLexer::value(std::vector<ShellPart>& parts, bool quoted, char end) {
  while (more() && look() != '}' && look() != end) {
    if (look() == '\\') {
      step();
      if (more()) add(parts, step(), true);
    } else if (look() == '\'' && !quoted) {
      ShellToken text;
      single_quoted(text);
      parts.push_back(std::move(text.parts.front()));
    } else if (look() == '"') {
      double_quoted(parts);
    } else if (look() == '$') {
      dollar(parts, quoted);
    } else if (look() == '`') {
      backticks(parts, quoted);
    } else {
      add(parts, step(), quoted);
    }
  }
}

void ShellLexer::backticks(std::vector<ShellPart>& parts, bool quoted) {
  const std::size_t from = at_;
  step();
  while (more() && look() != '`') {
    if (step() == '\\' && more()) step();
  }
  if (!more()) return fail("a quote that ` opens is not closed");
  step();
  // `# a comment` between continued lines makes no word.
  const bool comment = !quoted && text_[from + 1] == '#' &&
                       text_.substr(from, at_ - from).find('\n') == std::string_view::npos;
  if (!comment) unknown(parts, quoted, from);
}

void ShellLexer::skip_double_quotes() {
  const Nested nested(depth_);
  if (depth_ > kMostShellNesting) return fail("quotes in expansions, more than 100 deep");
  step();
  while (more() && look() != '"') {
    const char c = step();
    if (c == '\\' && more()) {
      step();
    } else if (c == '$' && look() == '(') {
      skip_parentheses();
    }
  }
  if (!more()) return fail("a quote that \" opens is not closed");
  step();
}

void ShellLexer::skip_parentheses() {
  const Nested nested(depth_);
  if (depth_ > kMostShellNesting) return fail("expansions in expansions, more than 100 deep");
  int open = 0;
  while (more()) {
    const char c = look();
    if (c == '"') {
      skip_double_quotes();
      continue;
    }
    if (c == '$' && look(1) == '\'') {
      step();
      skip_ansi_c_quotes();
      continue;
    }
    const bool starts = at_ > 0 && (ends_shell_words(text_[at_ - 1]));
    step();
    if (c == '\'') {
      while (more() && look() != '\'') step();
      if (more()) step();
    } else if (c == '\\' && more()) {
      step();
    } else if (c == '#' && starts) {
      while (more() && look() != '\n') step();
    } else if (c == '(') {
      ++open;
    } else if (c == ')' && --open == 0) {
      return;
    }
  }
  fail("an expansion that ( opens has no )");
}

}  // namespace shardwise
