// What ShellReader does with one command.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "planner/export/launch/launcher.h"
#include "planner/export/shell/shell_braces.h"
#include "planner/export/shell/shell_reader.h"

namespace shardwise {
namespace {

/// Commands whose success is a question.
constexpr std::array<std::string_view, 12> kAsking = {"grep", "egrep", "command", "which",
                                                      "type", "hash",  "pgrep",   "ping",
                                                      "diff", "cmp",   "expr",    "let"};
constexpr std::array<std::string_view, 5> kDeclaring = {"export", "declare", "typeset", "local",
                                                        "readonly"};

template <class List>
bool has(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

/// The word of NAME=VALUE as it begins; "" of others.
std::string_view assigning(const ShellToken& token) {
  if (token.kind == ShellToken::Kind::list) return token.text;
  if (!token.is_word() || token.parts.empty()) return "";
  const ShellPart& first = token.parts.front();
  const bool plain = first.kind == ShellPart::Kind::text && !first.quoted;
  return plain && is_assignment(first.text) ? std::string_view(first.text) : "";
}

std::string assigned_name(std::string_view text) {
  text = text.substr(0, text.find('='));
  if (text.ends_with('+')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

Outcome ShellReader::simple(Mode mode) {
  const int line = lexer_->peek().line;
  std::vector<ShellToken> tokens;
  Streams streams;
  while (!trouble_.stops()) {
    const ShellToken& next = lexer_->peek();
    if (next.is_word() || next.kind == ShellToken::Kind::list) {
      tokens.push_back(lexer_->take());
    } else if (is_redirection(next)) {
      redirection(streams);
      if (tokens.empty() && !lexer_->peek().is_word()) return Outcome::yes;  // > file
    } else if (next.kind == ShellToken::Kind::open) {
      if (say_placeholder(lexer_->peek())) return Outcome::unknown;
      lexer_->take();
      if (tokens.size() != 1 || lexer_->peek().kind != ShellToken::Kind::close) {
        trouble_.say(line, 0, "a ( inside a command");
        return Outcome::unknown;
      }
      lexer_->take();
      function(mode, std::string(tokens.front().bare()), line);
      return Outcome::yes;
    } else {
      break;
    }
  }
  if (trouble_.stops()) return Outcome::unknown;
  if (tokens.empty()) {
    trouble_.say(line, 0, fmt::format("a {} where a command begins", lexer_->peek().text));
    return Outcome::unknown;
  }
  if (mode == Mode::run) return run(tokens, streams);
  if (mode == Mode::undecided) look_at(tokens);
  return Outcome::unknown;
}

/// What a command would do that is not run.
void ShellReader::look_at(const std::vector<ShellToken>& tokens) {
  Words words;
  for (const ShellToken& token : tokens) {
    std::string text(token.bare());
    if (text.empty() && token.parts.size() > 1) text = token.parts.back().text;
    words.push_back({text, token.line, token.column});
  }
  const bool declares = has(kDeclaring, words.front().text);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = assigning(tokens[i]);
    if (text.empty() && !(declares && i == 0)) break;
    if (!text.empty()) unread_.names.insert(assigned_name(text));
  }
  if (words.size() > 1 && (words.front().text == "source" || words.front().text == ".")) {
    std::string name;
    for (const ShellPart& part : tokens[1].parts) {
      name += part.kind == ShellPart::Kind::text ? std::string(part.text) : std::string(part.raw);
    }
    source(std::move(name), words.front().line);
  }
  if (words.front().text == "unset" || words.front().text == "read") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (is_shell_name(words[i].text)) unread_.names.insert(words[i].text);
    }
  }
  unread_.program = unread_.program || starts_program(words);
  if (const auto called = functions_.find(words.front().text); called != functions_.end()) {
    const Unread& inside = called->second.unread;
    unread_.names.insert(inside.names.begin(), inside.names.end());
    unread_.program = unread_.program || inside.program;
  }
}

Outcome ShellReader::assign(const ShellToken& token) {
  const std::string_view text = assigning(token);
  const std::string name = assigned_name(text);
  const bool append = text.substr(0, text.find('=')).ends_with('+');
  if (exports_all_) exported_.insert(name);
  if (token.kind == ShellToken::Kind::list) {
    Words values;
    for (const ShellToken& each : token.elements) {
      std::ranges::move(variables_.expand(each), std::back_inserter(values));
      if (trouble_.stops()) return Outcome::unknown;
    }
    variables_.set_list(name, std::move(values), append);
    return Outcome::yes;
  }
  std::vector<ShellPart> parts = token.parts;
  parts.front().text.erase(0, parts.front().text.find('=') + 1);
  substitute(parts, token.line);
  ShellWord value{variables_.joined(parts, token.line), token.line, token.column};
  const bool known = !is_unknown(value.text);
  variables_.set(name, std::move(value), append);
  return known ? Outcome::yes : Outcome::unknown;
}

void ShellReader::declare(const std::vector<ShellToken>& tokens, std::size_t from,
                          const std::string& how) {
  bool exports = how == "export";
  for (std::size_t i = from; i < tokens.size(); ++i) {
    const std::string_view bare = tokens[i].bare();
    if (bare.starts_with('-') && bare.find('x') != std::string_view::npos) exports = true;
    std::string name;
    if (const std::string_view text = assigning(tokens[i]); !text.empty()) {
      ShellToken each = tokens[i];
      if (how != "export" && how != "readonly") make_local(assigned_name(text));
      const auto several = brace_expanded(each.parts, trouble_, each.line);
      if (!several) assign(each);
      for (std::size_t k = 0; several && k < several->size() && !trouble_.stops(); ++k) {
        each.parts = (*several)[k];
        assign(each);
      }
      name = assigned_name(text);
    } else if (is_shell_name(bare)) {
      name = bare;
      if (how == "local") {
        make_local(name);
        variables_.unset(name);
      }
    }
    if (exports && !name.empty()) exported_.insert(name);
  }
}

std::vector<ShellWord> ShellReader::exported() const {
  std::vector<ShellWord> made;
  for (const std::string& name : exported_) {
    const ShellWord* value = variables_.find(name);
    if (value == nullptr) continue;
    made.push_back({fmt::format("{}={}", name, unmarked(value->text)), value->line, value->column});
  }
  return made;
}

Outcome ShellReader::run(const std::vector<ShellToken>& tokens, Streams streams) {
  const Streams piped = std::exchange(piped_, {});
  if (!streams.here && !streams.word) {
    streams.here = piped.here;
    streams.piped = piped.piped;
  }
  std::size_t first = 0;
  while (first < tokens.size() && !assigning(tokens[first]).empty()) ++first;
  const std::string_view how = first < tokens.size() ? tokens[first].bare() : "";
  if (has(kDeclaring, how)) {
    declare(tokens, first + 1, std::string(how));
    return Outcome::yes;
  }
  Words words;
  for (std::size_t i = first; i < tokens.size(); ++i) {
    if (tokens[i].kind == ShellToken::Kind::list) {
      trouble_.say(tokens[i].line, 0, "a list inside a command");
    }
    std::ranges::move(variables_.expand(tokens[i]), std::back_inserter(words));
    if (trouble_.stops()) return Outcome::unknown;
  }
  if (words.empty()) {
    Outcome made = Outcome::yes;
    for (std::size_t i = 0; i < first; ++i) {
      if (assign(tokens[i]) == Outcome::unknown) made = Outcome::unknown;
    }
    return made;
  }
  assumed_ = !has(kAsking, words.front().text);
  if (const auto called = functions_.find(words.front().text); called != functions_.end()) {
    locals_.emplace_back();
    for (std::size_t i = 0; i < first; ++i) {
      make_local(assigned_name(assigning(tokens[i])));
      assign(tokens[i]);
    }
    return call(called->second, std::move(words));
  }
  if (const std::optional<Outcome> own = builtin(words, tokens.front().line)) {
    if (words.front().text == "read") read_into_variable(words, streams);
    return *own;
  }
  std::vector<ShellWord> environment;  // of this command alone
  for (std::size_t i = 0; i < first; ++i) {
    ShellToken value = tokens[i];
    if (value.parts.empty()) continue;
    const std::string name = assigned_name(assigning(tokens[i]));
    value.parts.front().text.erase(0, value.parts.front().text.find('=') + 1);
    environment.push_back({name + "=" + unmarked(variables_.joined(value.parts, value.line)),
                           value.line, value.column});
  }
  const bool asks = !assumed_ || words.front().text.starts_with(kUnknownBegin);
  write_files(words, streams);
  Streams written;
  if (lexer_->peek().kind == ShellToken::Kind::pipe) {
    const bool copies = words.front().text == "cat" && words.size() == 1;
    written.here = copies ? streams.here : std::nullopt;
    if (!written.here) written.piped = written_text(words, streams);
  }
  if (!read_handed(words, streams, environment)) start(std::move(words), std::move(environment));
  piped_ = std::move(written);
  return asks ? Outcome::unknown : Outcome::yes;
}

std::optional<Outcome> ShellReader::builtin(const Words& words, int line) {
  const std::string& name = words.front().text;
  if (name == "[" || name == "test") {
    assumed_ = false;
    Words inside(words.begin() + 1, words.end());
    if (name == "[") {
      if (inside.empty() || inside.back().text != "]") return Outcome::unknown;
      inside.pop_back();
    }
    return test_of(inside);
  }
  if (name == "true" || name == ":") return Outcome::yes;
  if (name == "false") return Outcome::no;
  if (name == "exit" || name == "return") {
    // In a branch it stops what lacks something: people who run the script have it.
    exited_ = branches_ == 0;
    return Outcome::yes;
  }
  if (name == "unset") {
    for (const ShellWord& each : words) {
      variables_.unset(each.text);
      exported_.erase(each.text);
    }
    return Outcome::yes;
  }
  if (name == "read" || name == "mapfile" || name == "readarray") {
    for (const ShellWord& each : words) variables_.forget(each.text);
    return Outcome::unknown;
  }
  if (name == "set") {
    set_options(words);
    const auto dashes = std::ranges::find(words, "--", &ShellWord::text);
    if (dashes != words.end()) set_arguments(Words(dashes + 1, words.end()));
    return Outcome::yes;
  }
  if (name == "shift") {
    shift(words);
    return Outcome::yes;
  }
  if (name == "source" || name == ".") {
    const std::string file = words.size() > 1 ? unmarked(words[1].text) : "";
    source(file, line);
    return Outcome::yes;
  }
  if (name.starts_with(kUnknownBegin) && unmarked(name).starts_with("((")) {
    const std::string sum = unmarked(name);
    for (std::size_t i = 0; i < sum.size();) {
      std::size_t end = i;
      while (end < sum.size() && in_shell_names(sum[end])) ++end;
      if (end > i) variables_.forget(sum.substr(i, end - i));
      i = std::max(end, i + 1);
    }
    assumed_ = false;
    return Outcome::unknown;
  }
  return std::nullopt;
}

/// Of the options of set the one that exports what is set from then on.
void ShellReader::set_options(const Words& words) {
  for (std::size_t i = 1; i < words.size() && words[i].text != "--"; ++i) {
    const std::string& word = words[i].text;
    const bool is_option = word.starts_with('-') || word.starts_with('+');
    if (!is_option) continue;
    const bool named =
        word.ends_with('o') && i + 1 < words.size() && words[i + 1].text == "allexport";
    if (named || word.find('a') != std::string::npos) exports_all_ = word.starts_with('-');
  }
}

void ShellReader::source(std::string name, int line) {
  constexpr std::size_t kMostSourced = 20;
  if (sourced_.size() < kMostSourced) sourced_.push_back({std::move(name), line, exports_all_});
}

/// A command that is no part of the shell: the job, if it has the most flags.
void ShellReader::start(Words words, std::vector<ShellWord> environment) {
  const auto name_of = [](const ShellWord& word) {
    return std::string_view(word.text).substr(word.text.rfind('/') + 1);
  };
  const bool has_options = words.size() > 1 && words[1].text.starts_with('-');
  if (name_of(words.front()) == "env" && !has_options) {
    auto last = words.begin() + 1;
    while (last != words.end() && is_assignment(last->text)) environment.push_back(*last++);
    words.erase(words.begin(), last);
    if (words.empty()) return;
  }
  if (name_of(words.front()) == "eval") {
    std::string text;
    for (std::size_t i = 1; i < words.size(); ++i) text += words[i].text + " ";
    return read_inner(text, words.front(), {});
  }
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (name_of(words[i]) != "bash" && name_of(words[i]) != "sh") continue;
    std::size_t option = i + 1;
    while (option + 2 < words.size() && words[option].text.starts_with('-') &&
           !words[option].text.ends_with('c')) {
      ++option;
    }
    if (!words[option].text.starts_with('-') || !words[option].text.ends_with('c')) continue;
    const ShellWord text = words[option + 1];
    words.resize(i);
    return read_inner(text.text, text, std::move(words));
  }
  ++commands_;
  words.insert(words.begin(), before_.begin(), before_.end());
  trouble_.charge(before_.size(), words.front().line);
  for (ShellWord& each : words) {
    each.unknown = unknowns_of(each.text);
    each.text = unmarked(std::move(each.text));
  }
  const auto flags = std::ranges::count_if(
      words, [](const ShellWord& word) { return word.text.starts_with("--"); });
  if (words.front().text.starts_with("--") && !(lines_are_one_ && commands_ == 1)) {
    return note(words.front().line,
                fmt::format("{} begins a command: it is not read", words.front().text),
                "end the line before it with \\, without a comment between");
  }
  const bool starts = starts_program(words);
  if (starts) ++started_;
  if (std::pair(starts, flags) < std::pair(best_starts_, best_flags_)) return;
  best_starts_ = starts;
  best_flags_ = flags;
  best_.words = std::move(words);
  best_.environment = exported();
  best_.directives = directives_;
  std::size_t copied = 0;
  for (const ShellWord& each : best_.environment) copied += each.text.size();
  trouble_.charge(copied, best_.words.front().line);
  std::ranges::move(environment, std::back_inserter(best_.environment));
}

}  // namespace shardwise
