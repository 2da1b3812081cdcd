#include "planner/export/shell/shell_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/export/shell/shell_variables.h"

namespace shardwise {

void ShellTrouble::say(int line, int column, const std::string& message, const std::string& hint) {
  if (stops()) return;
  problems.push_back({file, line, column, "", message,
                      hint.empty() ? "give the command as the shell runs it" : hint});
}

void ShellTrouble::charge(std::size_t bytes, int line) {
  made += bytes;
  if (made > kMostShellBytes) say(line, 0, "variables and braces make more than 1 MB of words");
}

std::string_view ShellToken::bare() const {
  const bool plain = is_word() && parts.size() == 1 && !parts.front().quoted &&
                     parts.front().kind == ShellPart::Kind::text;
  return plain ? std::string_view(parts.front().text) : std::string_view();
}

ShellLexer::ShellLexer(std::string_view text, ShellTrouble& trouble, bool lines_are_one,
                       const ShellWord* at, int first_line)
    : text_(text), trouble_(trouble), lines_are_one_(lines_are_one), fixed_(at), line_(first_line) {
  next_ = read();
}

ShellToken ShellLexer::take() {
  ShellToken taken = std::move(next_);
  next_ = read();
  return taken;
}

char ShellLexer::step() {
  const char c = text_[at_++];
  ++column_;
  if (c == '\n') {
    ++line_;
    column_ = 1;
  }
  return c;
}

void ShellLexer::fail(const std::string& message) {
  trouble_.say(fixed_ != nullptr ? fixed_->line : line_, 0, message);
}

ShellToken ShellLexer::token(ShellToken::Kind kind, std::size_t length) {
  ShellToken made;
  made.kind = kind;
  made.from = at_;
  made.line = fixed_ != nullptr ? fixed_->line : line_;
  made.column = fixed_ != nullptr ? fixed_->column : column_;
  made.text = text_.substr(at_, length);
  for (std::size_t i = 0; i < length; ++i) step();
  return made;
}

ShellToken ShellLexer::read() {
  skip_blanks();
  if (!more()) return token(ShellToken::Kind::end, 0);
  const char c = look();
  const char second = look(1);
  if (c == '\n') {
    ShellToken made = token(ShellToken::Kind::newline, 1);
    read_here_documents();
    return made;
  }
  if (c == '<' && second == '<' && look(2) != '<') return here_document();
  if (c == ';' && second == ';') return token(ShellToken::Kind::case_end, look(2) == '&' ? 3 : 2);
  if (c == ';')
    return second == '&' ? token(ShellToken::Kind::case_end, 2)
                         : token(ShellToken::Kind::newline, 1);
  if (c == '&' && second == '&') return token(ShellToken::Kind::and_if, 2);
  if (c == '&' && second == '>') return redirect();
  if (c == '&') return token(ShellToken::Kind::background, 1);
  if (c == '|' && second == '|') return token(ShellToken::Kind::or_if, 2);
  if (c == '|') return token(ShellToken::Kind::pipe, second == '&' ? 2 : 1);
  if ((c == '<' || c == '>') && second != '(') return redirect();
  if (c == '(' && second != '(') return token(ShellToken::Kind::open, 1);
  if (c == ')') return token(ShellToken::Kind::close, 1);
  std::size_t digits = 0;
  while (look(digits) >= '0' && look(digits) <= '9') ++digits;
  if (digits > 0 && (look(digits) == '<' || look(digits) == '>') && look(digits + 1) != '(') {
    const std::string_view stream = text_.substr(at_, digits);  // 2 of 2>&1
    at_ += digits;
    ShellToken made = redirect();
    made.text.insert(0, stream);
    return made;
  }
  begun_ = true;
  return word();
}

ShellToken ShellLexer::redirect() {
  const std::string_view rest = text_.substr(at_, 3);
  for (const std::string_view each : {"<<<", "&>>"}) {
    if (rest == each) return token(ShellToken::Kind::redirect, 3);
  }
  for (const std::string_view each : {"&>", ">>", ">&", "<&", ">|", "<>"}) {
    if (rest.starts_with(each)) return token(ShellToken::Kind::redirect, 2);
  }
  return token(ShellToken::Kind::redirect, 1);
}

void ShellLexer::skip_blanks() {
  while (more()) {
    const char c = look();
    if (c == ' ' || c == '\t' || (c == '\n' && lines_are_one_)) {
      step();
    } else if (c == '\\' && look(1) == '\n') {
      step();
      step();
    } else if (c == '#') {
      comment();
    } else {
      break;
    }
  }
}

void ShellLexer::comment() {
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  const std::string_view line = text_.substr(at_, end - at_);
  if (!begun_ && column_ == 1 && line.starts_with("#SBATCH ")) {
    std::size_t from = 8;
    while ((from = line.find_first_not_of(" \t", from)) != std::string_view::npos) {
      if (line[from] == '#') break;
      const std::size_t to = std::min(line.find_first_of(" \t", from), line.size());
      directives_.push_back(
          {std::string(line.substr(from, to - from)), line_, static_cast<int>(from) + 1});
      from = to;
    }
  }
  while (at_ < end) step();
}

void ShellLexer::add(std::vector<ShellPart>& parts, char c, bool quoted) {
  if (parts.empty() || parts.back().kind != ShellPart::Kind::text ||
      parts.back().quoted != quoted) {
    parts.emplace_back().quoted = quoted;
  }
  parts.back().text += c;
}

void ShellLexer::unknown(std::vector<ShellPart>& parts, bool quoted, std::size_t from,
                         ShellPart::Kind kind) const {
  ShellPart& made = parts.emplace_back();
  made.kind = kind;
  made.quoted = quoted;
  made.raw = text_.substr(from, at_ - from);
}

ShellToken ShellLexer::word() {
  ShellToken made = token(ShellToken::Kind::word, 0);
  while (more()) {
    const char c = look();
    if (c == '\\' && look(1) == '\n') {
      step();
      step();
    } else if (c == '\\') {
      step();
      if (at_ < text_.size()) add(made.parts, step(), true);
    } else if (c == '\'') {
      single_quoted(made);
    } else if (c == '"') {
      double_quoted(made.parts);
    } else if (c == '$') {
      dollar(made.parts, false);
    } else if (c == '`') {
      backticks(made.parts, false);
    } else if ((c == '<' || c == '>') && look(1) == '(' && made.parts.empty()) {
      const std::size_t from = at_;
      step();
      skip_parentheses();
      unknown(made.parts, false, from);
    } else if (c == '(' && look(1) == '(' && made.parts.empty()) {
      const std::size_t from = at_;
      skip_parentheses();
      unknown(made.parts, false, from);
    } else if (c == '(' && !in_list_ && is_assignment(made.bare()) && made.bare().back() == '=') {
      list(made);
      break;
    } else if (ends_shell_words(c)) {
      break;
    } else {
      add(made.parts, step(), false);
    }
  }
  return made;
}

void ShellLexer::list(ShellToken& made) {
  made.kind = ShellToken::Kind::list;
  made.text = made.parts.front().text;
  made.parts.clear();
  in_list_ = true;
  step();
  while (more()) {
    skip_blanks();
    if (look() == ')' || !more()) break;
    if (look() == '\n') {
      step();
    } else if (ends_shell_words(look()) && !((look() == '<' || look() == '>') && look(1) == '(')) {
      return fail(fmt::format("a list that ( opens has a {} without quotes", look()));
    } else {
      made.elements.push_back(word());
    }
  }
  in_list_ = false;
  if (trouble_.stops()) return;
  if (look() != ')') return fail("a list that ( opens has no )");
  step();
}

}  // namespace shardwise
