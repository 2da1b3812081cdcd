// Where commands of ShellReader read from and write to.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/export/shell/shell_reader.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {

using Kind = ShellToken::Kind;

void ShellReader::redirection(Streams& streams) {
  ShellToken sign = lexer_->take();
  if (sign.kind == Kind::here) {
    streams.here = std::move(sign);
    return;
  }
  if (!lexer_->peek().is_word()) {
    if (say_placeholder(sign)) return;
    return trouble_.say(sign.line, 0, "a redirection without a file");
  }
  ShellToken file = lexer_->take();
  if (sign.text == "<<<") streams.word = file;
  if (sign.text.starts_with('1')) sign.text.erase(0, 1);
  const bool appends = sign.text == ">>" || sign.text == "&>>";
  if (!appends && sign.text != ">" && sign.text != ">|" && sign.text != "&>") return;
  streams.output = std::move(file);
  streams.appends = appends;
}

/// \returns whether a token stands in <A TEXT LIKE THIS>, which then is the problem
bool ShellReader::say_placeholder(const ShellToken& token) {
  constexpr std::size_t kMost = 100;  // characters
  const std::size_t from = token.from - std::min(token.from, kMost);
  const std::string_view text = lexer_->text(from, token.from + kMost);
  const std::size_t open = text.substr(0, token.from - from).rfind('<');
  if (open == std::string_view::npos) return false;
  const std::string_view rest = text.substr(open);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  const std::size_t close = line.find('>', token.from - from - open);
  if (close == std::string_view::npos || close < 2 || line[1] == ' ' || line[1] == '<')
    return false;
  if (open + close < token.from - from) return false;
  trouble_.say(token.line, 0,
               fmt::format("{} stands for a value, and bash takes it for redirections",
                           shown(line.substr(0, close + 1))),
               "put the value in its place");
  return true;
}

/// What stands behind a compound command: done < file, } > log.
void ShellReader::skip_redirections() {
  Streams ignored;
  while (!trouble_.stops() && is_redirection(lexer_->peek())) redirection(ignored);
}

bool ShellReader::is_redirection(const ShellToken& token) {
  return token.kind == Kind::redirect || token.kind == Kind::here;
}

std::optional<std::string> ShellReader::here_text(const ShellToken& token, bool keeps_lines) {
  const HereDocument here = lexer_->here_document(token);
  if (!here.read || here.quoted) return here.read ? std::optional(here.body) : std::nullopt;
  ShellTrouble trouble{trouble_.file, {}, 0};
  const std::vector<ShellPart> parts = ShellLexer::here_parts(here.body, trouble, keeps_lines);
  if (trouble.stops()) return std::nullopt;
  return unmarked(variables_.joined(parts, token.line));
}

std::optional<std::string> ShellReader::read_text(const Streams& streams) {
  if (streams.here) return here_text(*streams.here, true);
  if (streams.word) {
    return unmarked(variables_.joined(streams.word->parts, streams.word->line)) + "\n";
  }
  return streams.piped;
}

/// read -r -d '' NAME << EOF
void ShellReader::read_into_variable(const Words& words, const Streams& streams) {
  bool whole = false;
  bool raw = false;
  const ShellWord* name = nullptr;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (!text.starts_with('-')) {
      if (std::exchange(name, &words[i]) != nullptr) return;  // it splits the first line
      continue;
    }
    raw = raw || text.find('r') != std::string::npos;
    if (text.ends_with('d')) whole = i + 1 < words.size() && words[++i].text.empty();
  }
  std::optional<std::string> text = streams.here ? here_text(*streams.here) : read_text(streams);
  if (!whole || !raw || name == nullptr || !is_shell_name(name->text) || !text) return;
  constexpr const char* kBlanks = " \t\n";
  text->erase(text->find_last_not_of(kBlanks) + 1);
  text->erase(0, text->find_first_not_of(kBlanks));
  variables_.set(name->text, {*std::move(text), name->line, name->column}, false);
}

/// What the command writes to its streams, where that needs no running.
std::optional<std::string> ShellReader::written_text(const Words& words, const Streams& streams) {
  const std::string& name = words.front().text;
  if ((name == "cat" && words.size() == 1) || name == "tee") {
    return streams.here ? here_text(*streams.here) : read_text(streams);
  }
  const bool option = words.size() > 1 && words[1].text.starts_with('-');
  if (name != "echo" || option) return std::nullopt;
  std::string text;
  for (std::size_t i = 1; i < words.size(); ++i) text += (i > 1 ? " " : "") + words[i].text;
  return unmarked(std::move(text)) + "\n";
}

/// Keeps what a command writes into files; of a file with other text nothing is known.
void ShellReader::write_files(const Words& words, const Streams& streams) {
  struct Target {
    std::string name;
    bool appends = false;
  };
  std::vector<Target> targets;
  const int line = words.front().line;
  if (streams.output) {
    targets.push_back({unmarked(variables_.joined(streams.output->parts, line)), streams.appends});
  }
  if (words.front().text == "tee") {
    const bool appends = words.size() > 1 && words[1].text == "-a";
    for (std::size_t i = appends ? 2 : 1; i < words.size(); ++i) {
      targets.push_back({unmarked(words[i].text), appends});
    }
  }
  std::erase_if(targets, [](const Target& each) { return each.name.starts_with("/dev/"); });
  if (targets.empty()) return;
  const std::optional<std::string> text = written_text(words, streams);
  const int first = streams.here ? lexer_->here_document(*streams.here).line : line;
  for (Target& each : targets) {
    const auto before = std::ranges::find(files_, each.name, &WrittenFile::name);
    const bool known = before != files_.end();
    if (text && known && each.appends) {
      trouble_.charge(text->size(), line);
      before->text += *text;
      continue;
    }
    if (known) files_.erase(before);
    // Nobody knows what was in a file that the script goes on with.
    constexpr std::size_t kMostFiles = 100;
    if (!text || each.appends || files_.size() >= kMostFiles) continue;
    trouble_.charge(text->size(), line);
    files_.push_back({std::move(each.name), *text, first});
  }
}

}  // namespace shardwise
