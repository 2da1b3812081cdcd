// Text that ShellReader finds in a script and another shell reads: that of bash -c and eval, of
// here-documents, and the batch scripts that sbatch is handed.

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "planner/export/launch/slurm_variables.h"
#include "planner/export/shell/shell_reader.h"

namespace shardwise {
namespace {

constexpr int kInnerDepth = 10;  // of commands in commands
constexpr std::size_t kMostInnerTexts = 1000;

std::string_view file_name(const ShellWord& word) {
  return std::string_view(word.text).substr(word.text.rfind('/') + 1);
}

bool is_shell(const ShellWord& word) {
  constexpr std::array<std::string_view, 4> kShells = {"bash", "sh", "zsh", "dash"};
  return std::ranges::find(kShells, file_name(word)) != kShells.end();
}

}  // namespace

/// The text that bash -c or eval runs.
void ShellReader::read_inner(const std::string& text, const ShellWord& at, Words before) {
  if (texts_.size() >= kMostInnerTexts)
    return trouble_.say(at.line, 0, "more than 1000 texts for bash -c");
  trouble_.charge(text.size(), at.line);
  depth_ += kInnerDepth;
  texts_.push_back(unmarked(text));
  const ShellWord place{"", at.line, at.column};
  ShellLexer inner(texts_.back(), trouble_, false, &place);
  ShellLexer* const outer = std::exchange(lexer_, &inner);
  before.insert(before.begin(), before_.begin(), before_.end());
  std::swap(before, before_);
  const bool exited = exited_;
  Locals of_job;
  if (changes_slurm_counts(before_)) {  // the step has others
    for (const auto& [name, value] : slurm_variables(directives_)) {
      of_job[name] = variables_.value(name);
      variables_.forget(name);
    }
  }
  to_the_end(Mode::run);
  for (auto& [name, value] : of_job) variables_.restore(name, std::move(value));
  exited_ = exited;
  std::swap(before, before_);
  lexer_ = outer;
  depth_ -= kInnerDepth;
}

/// sbatch --wrap TEXT.
bool ShellReader::read_wrapped(const Words& words, const Words& environment) {
  constexpr std::string_view kWrap = "--wrap";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool joint = words[i].text.starts_with("--wrap=");
    if (!joint && (words[i].text != kWrap || i + 1 == words.size())) continue;
    InnerScript script;
    script.text = unmarked(words[joint ? i : i + 1].text);
    if (joint) script.text.erase(0, kWrap.size() + 1);
    script.line = words[i].line;
    script.environment = environment;
    script.options = words;
    const auto at = script.options.begin() + static_cast<std::ptrdiff_t>(i);
    script.options.erase(at, at + (joint ? 1 : 2));
    script.options.erase(script.options.begin());
    read_script(std::move(script));
    return true;
  }
  return false;
}

/// The file that a command runs and the script wrote before, as the first word from `at` on that
/// is one; null without.
const WrittenFile* ShellReader::written_script(const Words& words, std::size_t& at) const {
  for (; at < words.size(); ++at) {
    std::string name = unmarked(words[at].text);
    if (name.starts_with("./")) name.erase(0, 2);
    const auto same = [&](const WrittenFile& each) {
      return each.name == name || each.name == "./" + name;
    };
    const auto file = std::ranges::find_if(files_, same);
    if (file != files_.end()) return &*file;
  }
  return nullptr;
}

/// A command that hands a script to a shell or to sbatch: a here-document, what a pipe brings, or a
/// file that the script wrote before. \returns whether it does
bool ShellReader::read_handed(const Words& words, const Streams& streams,
                              const Words& environment) {
  const std::string_view name = file_name(words.front());
  const bool batch = name == "sbatch";
  const bool remote = name == "ssh";
  if (batch && read_wrapped(words, environment)) return true;
  // srun … bash, bash -s: what stands before the shell starts it.
  const auto shell = std::ranges::find_if(words, is_shell);
  const auto place = static_cast<std::size_t>(shell - words.begin());
  InnerScript script;
  script.environment = environment;
  if (!batch && !remote) script.before.assign(words.begin(), shell);
  std::size_t at = batch || shell == words.end() ? 0 : place + 1;
  if (shell == words.end() && !batch) {
    // ./job.sh, or srun ./job.sh
    at = 0;
    const WrittenFile* file = written_script(words, at);
    const bool runs = file != nullptr && file->name.ends_with(".sh") &&
                      (at == 0 || name == "srun" || name == "mpirun");
    if (!runs && !remote) return false;
    if (runs) script.before.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    if (!runs) at = words.size();
  }
  const WrittenFile* file = written_script(words, at);
  if (file != nullptr) {
    const auto word = words.begin() + static_cast<std::ptrdiff_t>(at);
    if (batch) script.options.assign(words.begin() + 1, word);
    script.arguments.assign(word + 1, words.end());
    script.text = file->text;
    script.line = file->line;
    read_script(std::move(script));
    return true;
  }
  const bool open = streams.here || streams.word || streams.piped;
  const auto is_option = [](const ShellWord& each) { return each.text.starts_with('-'); };
  const bool named = !batch && !remote && !std::all_of(shell + 1, words.end(), is_option);
  if (!open || named) return false;  // bash job.sh
  std::optional<std::string> text = read_text(streams);
  if (!text) {
    note(Unread{words.front().line, {}, true}, "the here-document");
    return true;
  }
  script.text = *std::move(text);
  script.line = streams.here ? lexer_->here_document(*streams.here).line : words.front().line;
  if (batch) script.options.assign(words.begin() + 1, words.end());
  read_script(std::move(script));
  return true;
}

/// Puts the text of $(cat << EOF) in its place, and reads the job that $(sbatch << EOF) sends.
void ShellReader::substitute(std::vector<ShellPart>& parts, int line) {
  for (ShellPart& part : parts) {
    if (part.kind != ShellPart::Kind::unknown || !part.raw.starts_with("$(")) continue;
    std::string_view text = part.raw.substr(2, part.raw.size() - 3);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    const bool copies = text.starts_with("cat <<");
    if ((!copies && !text.starts_with("sbatch ")) || texts_.size() >= kMostInnerTexts) continue;
    trouble_.charge(text.size() + variables_.size(), line);
    if (trouble_.stops()) return;
    texts_.emplace_back(text);
    ShellLexer inner(texts_.back(), trouble_, false, nullptr, line);
    ShellLexer* const outer = std::exchange(lexer_, &inner);
    if (copies) {
      inner.take();
      const ShellToken here = inner.take();
      const bool ends = inner.peek().kind == ShellToken::Kind::newline;
      if (ends) inner.take();
      if (here.kind == ShellToken::Kind::here && ends &&
          inner.peek().kind == ShellToken::Kind::end) {
        if (std::optional<std::string> value = here_text(here)) {
          value->erase(value->find_last_not_of('\n') + 1);
          part.kind = ShellPart::Kind::text;
          part.quoted = true;
          part.text = *std::move(value);
        }
      }
    } else {
      const ShellVariables variables = variables_;
      const bool exited = exited_;
      depth_ += kInnerDepth;
      to_the_end(Mode::run);
      depth_ -= kInnerDepth;
      exited_ = exited;
      variables_.restore(variables);
    }
    lexer_ = outer;
  }
}

/// Sets what a shell is started with.
void ShellReader::set_environment(const Words& environment) {
  for (const ShellWord& each : environment) {
    const std::size_t equals = each.text.find('=');
    const std::string name = each.text.substr(0, equals);
    variables_.set(name, {each.text.substr(equals + 1), each.line, each.column}, false);
    exported_.insert(name);
  }
}

/// Reads a script in a script. It has the exported variables of the outer one, and #SBATCH lines of
/// its own, which the words behind sbatch count before.
void ShellReader::read_script(InnerScript script) {
  if (texts_.size() >= kMostInnerTexts) {
    return trouble_.say(script.line, 0, "more than 1000 texts for other shells");
  }
  trouble_.charge(script.text.size() + variables_.size(), script.line);
  if (trouble_.stops()) return;
  texts_.push_back(std::move(script.text));
  const ShellVariables variables = variables_;
  const std::set<std::string> names = exported_;
  set_environment(script.environment);
  variables_.keep(exported_);
  set_arguments(std::move(script.arguments));
  std::map<std::string, Function> functions = std::exchange(functions_, {});
  std::vector<Locals> locals = std::exchange(locals_, {});
  Words directives = directives_;
  script.before.insert(script.before.begin(), before_.begin(), before_.end());
  std::swap(script.before, before_);
  const bool exited = std::exchange(exited_, false);
  depth_ += kInnerDepth;
  ShellLexer inner(texts_.back(), trouble_, false, nullptr, script.line);
  ShellLexer* const outer = std::exchange(lexer_, &inner);
  skip_newlines();
  if (!script.options.empty() || !inner.directives().empty()) {
    directives_ = std::move(inner.directives());
    std::ranges::move(script.options, std::back_inserter(directives_));
  }
  for (const auto& [name, value] : slurm_variables(directives_)) variables_.set(name, value, false);
  to_the_end(Mode::run);
  lexer_ = outer;
  depth_ -= kInnerDepth;
  exited_ = exited;
  std::swap(script.before, before_);
  directives_ = std::move(directives);
  functions_ = std::move(functions);
  locals_ = std::move(locals);
  variables_.restore(variables);
  exported_ = names;
}

}  // namespace shardwise
