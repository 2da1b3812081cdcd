// Where commands of ShellReader read from and write to.

#include <algorithm>
#include <utility>

#include "planner/export/shell_reader.h"

namespace shardwise {

using Kind = ShellToken::Kind;

void ShellReader::redirection(Streams& streams) {
  ShellToken sign = lexer_->take();
  if (sign.kind == Kind::here) {
    streams.here = std::move(sign);
    return;
  }
  if (!lexer_->peek().is_word()) {
    return trouble_.say(sign.line, 0, "a redirection without a file");
  }
  ShellToken file = lexer_->take();
  if (sign.text.starts_with('1')) sign.text.erase(0, 1);
  const bool appends = sign.text == ">>" || sign.text == "&>>";
  if (!appends && sign.text != ">" && sign.text != ">|" && sign.text != "&>") return;
  streams.output = std::move(file);
  streams.appends = appends;
}

/// What stands behind a compound command: done < file, } > log.
void ShellReader::skip_redirections() {
  Streams ignored;
  while (!trouble_.stops() && is_redirection(lexer_->peek())) redirection(ignored);
}

bool ShellReader::is_redirection(const ShellToken& token) {
  return token.kind == Kind::redirect || token.kind == Kind::here;
}

/// The text of a here-document, if the reader is behind it.
std::optional<std::string> ShellReader::here_text(const ShellToken& token) {
  const HereDocument& here = lexer_->here_document(token);
  if (!here.read || here.quoted) return here.read ? std::optional(here.body) : std::nullopt;
  ShellTrouble trouble{trouble_.file, {}, 0};
  const std::vector<ShellPart> parts = ShellLexer::here_parts(here.body, trouble);
  if (trouble.stops()) return std::nullopt;
  return unmarked(variables_.joined(parts, token.line));
}

/// What the command writes to its streams, where that needs no running.
std::optional<std::string> ShellReader::written_text(const Words& words, const Streams& streams) {
  const std::string& name = words.front().text;
  if ((name == "cat" && words.size() == 1) || name == "tee") {
    return streams.here ? here_text(*streams.here) : std::nullopt;
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
