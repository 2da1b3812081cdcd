// Here-documents of ShellLexer.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/export/shell/shell_lexer.h"
#include "planner/export/shell/shell_variables.h"

namespace shardwise {

ShellLexer::ShellLexer(Bare, std::string_view text, ShellTrouble& trouble)
    : text_(text), trouble_(trouble), lines_are_one_(false), fixed_(nullptr) {}

std::vector<ShellPart> ShellLexer::here_parts(std::string_view body, ShellTrouble& trouble,
                                              bool keeps_lines) {
  ShellLexer lexer(Bare(), body, trouble);
  lexer.keeps_lines_ = keeps_lines;
  std::vector<ShellPart> parts;
  lexer.expanded(parts, '\0');
  return parts;
}

HereDocument ShellLexer::here_document(const ShellToken& token) const {
  constexpr std::size_t kMostAhead = 50;  // here-documents: each reading ahead copies them
  const auto number = static_cast<std::size_t>(token.number);
  if (here_[number].read || here_.size() > kMostAhead) return here_[number];
  ShellLexer ahead = *this;
  while (!ahead.here_[number].read && !trouble_.stops() &&
         ahead.peek().kind != ShellToken::Kind::end) {
    ahead.take();
  }
  return ahead.here_[number];
}

ShellToken ShellLexer::here_document() {
  ShellToken made = token(ShellToken::Kind::here, 2);
  made.number = static_cast<int>(here_.size());
  HereDocument here;
  if (look() == '-') {
    here.tabs = true;
    step();
  }
  while (look() == ' ' || look() == '\t') step();
  char quote = '\0';
  while (more() && (quote != '\0' || !ends_shell_words(look()))) {
    const char c = step();
    const bool quotes = c == '\'' || c == '"';
    here.quoted = here.quoted || quotes || c == '\\';
    if (quotes && (quote == '\0' || quote == c)) {
      quote = quote == c ? '\0' : c;
    } else if (c != '\\') {
      here.end += c;
    }
  }
  if (here.end.empty()) fail("a here-document without its end");
  here_.push_back(std::move(here));
  return made;
}

void ShellLexer::read_here_documents() {
  for (; here_read_ < here_.size(); ++here_read_) {
    HereDocument& here = here_[here_read_];
    bool over = false;
    here.line = fixed_ != nullptr ? fixed_->line : line_;
    while (more() && !over) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      if (here.tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      over = line == here.end;
      if (!over) here.body.append(line).append("\n");
      while (at_ < std::min(end + 1, text_.size())) step();
    }
    here.read = over;
    if (!over) fail(fmt::format("a here-document that <<{} opens has no {}", here.end, here.end));
  }
}

}  // namespace shardwise
