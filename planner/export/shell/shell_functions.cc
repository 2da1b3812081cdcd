// Functions of ShellReader, and the arguments that they and `set --` have.

#include <algorithm>
#include <string>
#include <utility>

#include "planner/export/shell/shell_reader.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostArguments = 64;  // that have names: ${64}

}  // namespace

/// A function is looked at where it is defined, and read where it is called.
void ShellReader::function(Mode mode, const std::string& name, int line) {
  skip_newlines();
  const bool inner = mode == Mode::undecided;
  const std::size_t from = lexer_->peek().from;
  const int first = lexer_->peek().line;
  Unread outer = std::exchange(unread_, {line, {}, false});
  command(mode == Mode::run ? Mode::undecided : mode);
  Unread body = std::exchange(unread_, std::move(outer));
  if (inner) {
    unread_.names.merge(body.names);
    unread_.program = unread_.program || body.program;
  } else if (mode == Mode::run) {
    functions_[name] = {lexer_->text(from, lexer_->peek().from), first, std::move(body)};
  }
}

/// \pre locals_ has a place for the variables of the call
Outcome ShellReader::call(const Function& function, Words words) {
  constexpr std::size_t kMostCalls = 8;  // in each other
  constexpr std::size_t kLeastBytes = 500;
  constexpr int kDepth = 10;  // of commands in commands
  if (locals_.size() > kMostCalls) {
    note(function.unread, "the function that is called");
    locals_.pop_back();
    return Outcome::unknown;
  }
  trouble_.charge(std::max(function.body.size(), kLeastBytes), words.front().line);
  for (const char* name : {"@", "*", "#"}) make_local(name);
  for (std::size_t i = 1; i <= kMostArguments; ++i) make_local(std::to_string(i));
  words.erase(words.begin());
  set_arguments(std::move(words));
  const std::string_view body = function.body;
  ShellLexer inner(body, trouble_, false, nullptr, function.line);
  ShellLexer* const outer = std::exchange(lexer_, &inner);
  const bool exited = std::exchange(exited_, false);
  depth_ += kDepth;
  Outcome made = list(Mode::run);
  depth_ -= kDepth;
  // What it returns is not read.
  if (std::exchange(exited_, exited)) made = Outcome::unknown;
  lexer_ = outer;
  for (auto& [name, value] : locals_.back()) variables_.restore(name, std::move(value));
  locals_.pop_back();
  return made;
}

void ShellReader::make_local(const std::string& name) {
  if (locals_.empty()) return;
  const auto [at, is_new] = locals_.back().try_emplace(name);
  if (!is_new) return;
  std::optional<ShellVariables::Value> value = variables_.value(name);
  if (!value) return;
  for (const ShellWord& each : value->elements) trouble_.charge(each.text.size(), each.line);
  at->second = std::move(value);
}

/// \param words  nothing where nobody knows them
void ShellReader::set_arguments(std::optional<Words> words) {
  for (std::size_t i = 1; i <= kMostArguments; ++i) {
    const std::string name = std::to_string(i);
    variables_.unset(name);
    if (!words) variables_.forget(name);
    if (words && i <= words->size()) variables_.set(name, (*words)[i - 1], false);
  }
  if (!words) {
    for (const char* name : {"@", "*", "#"}) variables_.forget(name);
    return;
  }
  variables_.set("#", {std::to_string(words->size()), 0, 0}, false);
  variables_.set_list("*", *words, false);
  variables_.set_list("@", *std::move(words), false);
}

void ShellReader::shift(const Words& words) {
  const std::optional<ShellVariables::Value> all = variables_.value("@");
  const std::optional<std::int64_t> by =
      words.size() > 1 ? parse_integer(words[1].text) : std::optional<std::int64_t>(1);
  if (!all || !by || *by < 0) return set_arguments(std::nullopt);
  const auto count = std::min(static_cast<std::size_t>(*by), all->elements.size());
  for (const ShellWord& each : all->elements) trouble_.charge(each.text.size() + 1, each.line);
  if (trouble_.stops()) return;
  set_arguments(
      Words(all->elements.begin() + static_cast<std::ptrdiff_t>(count), all->elements.end()));
}

}  // namespace shardwise
