#include "planner/export/shell/shell_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/export/launch/slurm_variables.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr const char* kBehind = "give the flags as a command behind --";

bool ends_list(const ShellToken& token) {
  constexpr std::string_view kEnds[] = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};
  return token.kind == ShellToken::Kind::end || token.kind == ShellToken::Kind::close ||
         token.kind == ShellToken::Kind::case_end ||
         std::ranges::find(kEnds, token.bare()) != std::end(kEnds);
}

}  // namespace

ShellReader::ShellReader(std::string_view text, const std::string& file, bool lines_are_one,
                         std::set<int> taken)
    : trouble_{file, {}, 0},
      lines_are_one_(lines_are_one),
      taken_(std::move(taken)),
      first_(text, trouble_, lines_are_one),
      variables_(trouble_) {}

Result<ShellCommand> ShellReader::read(const ShellStart& start) {
  skip_newlines();
  directives_ = first_.directives();
  directives_.insert(directives_.end(), start.options.begin(), start.options.end());
  set_environment(start.environment);
  if (start.stated) set_arguments(start.arguments);
  for (const auto& [name, value] : slurm_variables(directives_)) variables_.set(name, value, false);
  to_the_end(Mode::run);
  if (trouble_.stops()) return trouble_.problems;
  if (lost_ > 0 && !best_starts_ && best_flags_ <= 0) {
    trouble_.say(lost_, 0,
                 "the program is started where it is not read: in a branch, a loop, a function "
                 "or a here-document",
                 kBehind);
    return trouble_.problems;
  }
  if (best_flags_ < 0) {
    best_.environment = exported();
    best_.directives = directives_;
  }
  if (started_ > 1) {
    note(best_.words.front().line,
         fmt::format("of {} commands that start a program, the one with most flags is read",
                     started_),
         "give another one behind --");
  }
  for (const ShellWord& each : best_.words) {
    if (!each.pattern) continue;
    note(each.line,
         fmt::format("{} stays as it is written: no file is looked for", shown(each.text)),
         "give the names of the files");
  }
  best_.files = std::move(files_);
  best_.sourced = std::move(sourced_);
  best_.unread.assign(unread_names_.begin(), unread_names_.end());
  best_.notes = std::move(notes_);
  return std::move(best_);
}

void ShellReader::note(int line, const std::string& message, const std::string& hint) {
  constexpr std::size_t kMost = 20;
  if (notes_.size() < kMost) notes_.push_back({trouble_.file, line, 0, "", message, hint});
}

void ShellReader::note(const Unread& unread, const char* what) {
  if (unread.names.empty() && !unread.program) return;
  if (unread.program && lost_ == 0) lost_ = unread.line;
  unread_names_.insert(unread.names.begin(), unread.names.end());
  constexpr std::size_t kMost = 5;
  std::vector<std::string> says;
  if (!unread.names.empty()) {
    std::vector<std::string> names(unread.names.begin(), unread.names.end());
    const bool more = names.size() > kMost;
    if (more) names.resize(kMost);
    says.push_back(fmt::format("sets {}{}", fmt::join(names, ", "), more ? " and more" : ""));
  }
  if (unread.program) says.emplace_back("starts a program");
  note(unread.line, fmt::format("{} is not read: it {}", what, fmt::join(says, " and ")), kBehind);
}

template <class Body>
void ShellReader::part(Mode outer, Mode mode, int line, const char* what, const Body& body) {
  ++branches_;
  if (outer == Mode::run && mode == Mode::undecided) {
    unread_ = {line, {}, false};
    body();
    note(std::exchange(unread_, {}), what);
  } else {
    body();
  }
  --branches_;
}

ShellReader::Mode ShellReader::decided(Mode mode, Outcome outcome) {
  if (mode != Mode::run || outcome == Outcome::yes) return mode;
  return outcome == Outcome::no ? Mode::skip : Mode::undecided;
}

ShellReader::Mode ShellReader::branch_mode(Mode outer, Mode mode, int line) {
  if (outer != Mode::run || mode != Mode::undecided || !taken_.contains(line)) return mode;
  note(line, "this branch is read, since it starts a program: nobody knows its condition", kBehind);
  return Mode::run;
}

void ShellReader::skip_newlines() {
  while (lexer_->peek().kind == ShellToken::Kind::newline) lexer_->take();
}

void ShellReader::expect(std::string_view word, std::string_view opener, int line) {
  const ShellToken& next = lexer_->peek();
  if (word == ")" ? next.kind == ShellToken::Kind::close : next.bare() == word) {
    lexer_->take();
  } else {
    trouble_.say(next.line, 0, fmt::format("{} of line {} has no {}", opener, line, word));
  }
}

void ShellReader::to_the_end(Mode mode) {
  list(mode);
  const ShellToken& next = lexer_->peek();
  if (next.kind == ShellToken::Kind::end) return;
  const std::string_view word = next.is_word() ? next.bare() : std::string_view(next.text);
  trouble_.say(next.line, 0, fmt::format("a {} without what it ends", word));
}

Outcome ShellReader::list(Mode mode) {
  Outcome last = Outcome::yes;
  while (!trouble_.stops()) {
    while (lexer_->peek().kind == ShellToken::Kind::newline ||
           lexer_->peek().kind == ShellToken::Kind::background) {
      lexer_->take();
    }
    if (ends_list(lexer_->peek())) break;
    last = and_or(exited_ ? Mode::skip : mode);
  }
  return last;
}

Outcome ShellReader::and_or(Mode mode) {
  Outcome last = pipeline(mode);
  while (!trouble_.stops() && (lexer_->peek().kind == ShellToken::Kind::and_if ||
                               lexer_->peek().kind == ShellToken::Kind::or_if)) {
    const ShellToken sign = lexer_->take();
    skip_newlines();
    const bool both = sign.kind == ShellToken::Kind::and_if;
    Outcome runs = both ? last : negated(last);
    if (!both && last == Outcome::yes && assumed_) runs = Outcome::unknown;
    const Mode next = exited_ ? Mode::skip : branch_mode(mode, decided(mode, runs), sign.line);
    part(mode, next, sign.line, both ? "what && decides" : "what || decides", [&] {
      const Outcome made = pipeline(next);
      if (next != Mode::skip) last = next == Mode::run ? made : Outcome::unknown;
    });
  }
  return last;
}

Outcome ShellReader::pipeline(Mode mode) {
  bool negative = false;
  while (lexer_->peek().bare() == "!") {
    lexer_->take();
    negative = !negative;
  }
  const Streams outer = std::exchange(piped_, {});
  Outcome made = command(mode);
  while (!trouble_.stops() && lexer_->peek().kind == ShellToken::Kind::pipe) {
    lexer_->take();
    skip_newlines();
    command(mode);
    made = Outcome::unknown;
  }
  piped_ = outer;
  return negative ? negated(made) : made;
}

Outcome ShellReader::command(Mode mode) {
  const ShellToken& next = lexer_->peek();
  const int line = next.line;
  if (++depth_ > kMostShellNesting)
    trouble_.say(line, 0, "commands in commands, more than 100 deep");
  if (trouble_.stops()) return Outcome::unknown;
  Outcome made = Outcome::unknown;
  assumed_ = false;
  const std::string word(next.bare());
  if (next.kind == ShellToken::Kind::open) {
    subshell(mode);
  } else if (word == "if") {
    if_command(mode);
  } else if (word == "case") {
    case_command(mode);
  } else if (word == "for" || word == "select") {
    loop(mode, true);
  } else if (word == "while" || word == "until") {
    loop(mode, false);
  } else if (word == "{") {
    lexer_->take();
    made = list(mode);
    expect("}", "{", line);
  } else if (word == "function") {
    lexer_->take();
    const std::string name(lexer_->take().bare());
    if (lexer_->peek().kind == ShellToken::Kind::open) {
      lexer_->take();
      expect(")", "function", line);
    }
    function(mode, name, line);
  } else if (word == "[[") {
    made = double_bracket(mode);
  } else {
    made = simple(mode);
    --depth_;
    return made;
  }
  skip_redirections();
  --depth_;
  return made;
}

Outcome ShellReader::double_bracket(Mode mode) {
  const int line = lexer_->take().line;
  std::vector<ShellToken> tokens;
  while (!trouble_.stops() && lexer_->peek().bare() != "]]") {
    if (lexer_->peek().kind == ShellToken::Kind::end) {
      trouble_.say(line, 0, "[[ has no ]]");
      return Outcome::unknown;
    }
    ShellToken token = lexer_->take();
    if (token.kind != ShellToken::Kind::newline) tokens.push_back(std::move(token));
  }
  lexer_->take();
  return mode == Mode::run ? test_of(tokens, variables_) : Outcome::unknown;
}

void ShellReader::if_command(Mode mode) {
  const int line = lexer_->peek().line;
  Outcome taken = Outcome::no;  // a branch so far
  while (!trouble_.stops()) {
    const int branch_line = lexer_->take().line;  // if or elif
    const Mode asked = decided(mode, negated(taken));
    Outcome holds = Outcome::no;
    part(mode, asked, branch_line, "the condition", [&] { holds = list(asked); });
    if (asked == Mode::undecided) holds = Outcome::unknown;
    expect("then", "if", line);
    const Mode branch =
        branch_mode(mode, asked == Mode::run ? decided(mode, holds) : asked, branch_line);
    part(mode, branch, branch_line, "the branch", [&] { list(branch); });
    if (taken == Outcome::no) taken = holds;
    if (branch == Mode::run) taken = Outcome::yes;
    if (lexer_->peek().bare() != "elif") break;
  }
  if (lexer_->peek().bare() == "else") {
    const int branch_line = lexer_->take().line;
    const Mode branch = branch_mode(mode, decided(mode, negated(taken)), branch_line);
    part(mode, branch, branch_line, "the branch", [&] { list(branch); });
  }
  expect("fi", "if", line);
}

void ShellReader::case_command(Mode mode) {
  const int line = lexer_->take().line;
  const ShellToken subject = lexer_->take();
  const std::string value =
      mode == Mode::run ? variables_.joined(subject.parts, subject.line) : std::string();
  skip_newlines();
  expect("in", "case", line);
  Outcome taken = Outcome::no;
  while (!trouble_.stops()) {
    skip_newlines();
    if (lexer_->peek().bare() == "esac") break;
    if (lexer_->peek().kind == ShellToken::Kind::open) lexer_->take();
    const int branch_line = lexer_->peek().line;
    Outcome fits = Outcome::no;
    while (lexer_->peek().is_word()) {
      const ShellToken pattern = lexer_->take();
      if (mode == Mode::run) {
        const Outcome one = matches(value, pattern, variables_);
        if (one == Outcome::yes || fits == Outcome::no) fits = one;
      }
      if (lexer_->peek().kind == ShellToken::Kind::pipe) lexer_->take();
    }
    expect(")", "a pattern of case", branch_line);
    const Mode asked = decided(mode, negated(taken));
    const Mode branch =
        branch_mode(mode, asked == Mode::run ? decided(mode, fits) : asked, branch_line);
    part(mode, branch, branch_line, "the branch", [&] { list(branch); });
    if (taken == Outcome::no) taken = fits;
    if (branch == Mode::run) taken = Outcome::yes;
    if (lexer_->peek().kind != ShellToken::Kind::case_end) break;
    lexer_->take();
  }
  expect("esac", "case", line);
}

void ShellReader::loop(Mode mode, bool has_name) {
  const bool repeats = mode == Mode::run && lexer_->peek().bare() == "while";
  const int line = lexer_->take().line;
  const std::string_view asks = lexer_->peek().bare();
  if (repeats && (asks == "[[" || asks == "[")) return decided_loop(line);
  const Mode inside = mode == Mode::run ? Mode::undecided : mode;
  part(mode, inside, line, "the loop", [&] {
    if (has_name) {
      if (mode == Mode::run) variables_.forget(std::string(lexer_->peek().bare()));
      while (lexer_->peek().is_word() && lexer_->peek().bare() != "do") lexer_->take();
      skip_newlines();
    } else {
      list(inside);
    }
    expect("do", "a loop", line);
    list(inside);
    expect("done", "a loop", line);
  });
}

/// A loop is looked at, and read as often as its condition holds: where nobody knows the condition,
/// or break or continue decides, it is not read.
void ShellReader::decided_loop(int line) {
  constexpr int kMostTurns = 200;
  constexpr std::size_t kLeastBytes = 500;
  const std::size_t from = lexer_->peek().from;
  const int first = lexer_->peek().line;
  Unread outer = std::exchange(unread_, {line, {}, false});
  ++branches_;
  list(Mode::undecided);
  expect("do", "a loop", line);
  list(Mode::undecided);
  const std::string_view text = lexer_->text(from, lexer_->peek().from);
  expect("done", "a loop", line);
  --branches_;
  const Unread inside = std::exchange(unread_, std::move(outer));
  const bool leaves = text.find("break") != std::string_view::npos ||
                      text.find("continue") != std::string_view::npos;
  Outcome holds = leaves ? Outcome::unknown : Outcome::yes;
  ++branches_;
  for (int turn = 0; holds == Outcome::yes && !exited_ && !trouble_.stops(); ++turn) {
    trouble_.charge(std::max(text.size(), kLeastBytes), line);
    ShellLexer inner(text, trouble_, false, nullptr, first);
    ShellLexer* const around = std::exchange(lexer_, &inner);
    holds = list(Mode::run);
    expect("do", "a loop", line);
    if (turn == kMostTurns) holds = Outcome::unknown;
    if (holds == Outcome::yes) list(Mode::run);
    lexer_ = around;
  }
  --branches_;
  if (holds == Outcome::unknown) note(inside, "the loop");
}

/// What ( … ) sets is forgotten behind it.
void ShellReader::subshell(Mode mode) {
  const int line = lexer_->take().line;
  if (mode != Mode::run) {
    list(mode);
    return expect(")", "(", line);
  }
  trouble_.charge(variables_.size(), line);
  if (trouble_.stops()) return;
  const ShellVariables variables = variables_;
  const std::set<std::string> names = exported_;
  list(mode);
  expect(")", "(", line);
  variables_.restore(variables);
  exported_ = names;
  exited_ = false;
}

}  // namespace shardwise
