#include "planner/export/configuration/command_configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/export/configuration/yaml_scalar.h"
#include "planner/export/launch/accelerate_flags.h"
#include "planner/export/launch/torchtitan_script.h"
#include "planner/export/shell/launch_environment.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// Reads the words of one command: what is before the program belongs to the launcher.
/// JSON in which variables that nobody knows are texts: {"stage": $STAGE}. Other files as they are.
std::string quoted_variables(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return text;
  std::string made;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted || c != '$') {
      made += c;
      if (quoted && c == '\\' && i + 1 < text.size()) {
        made += text[++i];
      } else if (c == '"') {
        quoted = !quoted;
      }
      continue;
    }
    int braces = 0;
    made += '"';
    for (; i < text.size(); ++i) {
      const char each = text[i];
      const bool ends = each == ',' || each == ']' || each == '}' || each == '"' || each == ' ' ||
                        each == '\n' || each == '\t' || each == '\r';
      if (braces == 0 && ends) break;
      if (each == '"' || each == '\\' || each == '\n') continue;
      braces += each == '{' || each == '(' ? 1 : each == '}' || each == ')' ? -1 : 0;
      made += each;
    }
    made += '"';
    if (i < text.size()) --i;
  }
  return made;
}

class CommandReader {
 public:
  CommandReader(const ShellCommand& command, const std::string& file, const GivenFiles& given)
      : command_(command), given_(given) {
    made_.file = file;
  }

  Result<Configuration> read() {
    read_written_files();
    Launch launch = read_launch(command_, made_.file, given_);
    if (!launch.problems.empty()) return std::move(launch.problems);
    const TorchtitanScript script = torchtitan_script(command_);
    made_.ranks = launch.ranks > 0 ? launch.ranks : script.ranks;
    made_.notes.insert(made_.notes.begin(), command_.notes.begin(), command_.notes.end());
    std::ranges::move(launch.notes, std::back_inserter(made_.notes));
    for (const LauncherFlag& each : launch.accelerate) launcher_key(each);
    for (const ShellWord& each : script.arguments) argument(each);
    for (std::size_t i = launch.arguments; i < command_.words.size(); ++i) {
      argument(command_.words[i]);
    }
    note_unknown(launch.arguments);
    if (launch.arguments > 0 && launch.arguments <= command_.words.size()) {
      const std::string& path = command_.words[launch.arguments - 1].text;
      made_.program = path.substr(path.rfind('/') + 1);
    }
    read_environment(launch.arguments);
    if (written_.empty()) return std::move(made_);  // its launcher's flags count before other files
    std::vector<Configuration> all = std::move(written_);
    all.insert(all.begin(), std::move(made_));
    return joined(std::move(all));
  }

 private:
  /// What #SBATCH lines say counts before the script's own variables, and those before the
  /// launcher's.
  void read_environment(std::size_t before) {
    const LaunchEnvironment launched = launch_environment(command_.words, before);
    for (const ShellWord& each : job_environment(command_.directives).set) variable(each);
    for (const ShellWord& each : command_.environment) variable(each);
    for (const std::string& name : launched.unset) {
      std::erase_if(made_.environment, [&](const GivenSetting& each) { return each.name == name; });
    }
    for (const ShellWord& each : launched.set) variable(each);
    made_.unread = command_.unread;
    for (const SourcedFile& each : command_.sourced) sourced(each);
    for (const SourcedFile& each : launched.files) sourced(each);
  }

  void variable(const ShellWord& word) {
    const std::size_t at = word.text.find('=');
    GivenSetting setting = given(word, word.text.substr(0, at));
    setting.words = {word.text.substr(at + 1)};
    made_.environment.push_back(std::move(setting));
  }

  /// A file that is given is read as one of the job, with what it exports itself.
  void sourced(const SourcedFile& file) {
    const bool is_given = given_.has(file.name);
    if (is_given && !file.exports) return;
    made_.sourced.push_back(file.name);
    made_.notes.push_back(
        {made_.file, file.line, 0, "",
         is_given ? fmt::format("{} is read without set -a: what it sets and does not export is "
                                "not known",
                                shown(file.name))
                  : fmt::format("{} is not read: what it sets is not known", shown(file.name)),
         is_given ? "export in that file" : "give that file too"});
  }

  GivenSetting given(const ShellWord& word, const std::string& name) const {
    GivenSetting setting;
    setting.name = name;
    setting.file = made_.file;
    setting.line = word.line;
    setting.column = word.column;
    setting.path = name;
    return setting;
  }

  /// A word that nobody knows: $MORE, which may be several words or none.
  static bool is_unknown(const ShellWord& word) {
    if (word.line == 0) return word.text.starts_with('$');
    return word.unknown.size() == 1 && word.text == word.unknown.front();
  }

  /// What a script's caller or a variable that it does not set hands on ("$@", $MORE) is no word of
  /// a flag, but where the flag has none yet (--data-path $DATA) or a list (--data-path 1 a 2 $B).
  static bool belongs_to(const GivenSetting& flag, const ShellWord& word) {
    if (!is_unknown(word)) return true;
    return flag.words.size() != 1 && word.text != "$@" && word.text != "$*" && word.text != "${@}";
  }

  /// A choice of torchtitan: "activation-checkpoint:full".
  static bool is_choice(std::string_view text) {
    const std::string_view name = text.substr(0, text.find(':'));
    const bool is_name = !name.empty() && (name.front() < '0' || name.front() > '9');
    return is_name && name.size() < text.size() && text.find('/') == std::string_view::npos;
  }

  void argument(const ShellWord& word) {
    if (word.text.starts_with("--")) {
      const std::size_t at = word.text.find('=');
      made_.settings.push_back(given(word, word.text.substr(0, at)));
      if (at != std::string::npos) made_.settings.back().words = {word.text.substr(at + 1)};
    } else if (const std::size_t colon = word.text.find(':');
               is_choice(word.text) &&
               (made_.settings.empty() || !made_.settings.back().words.empty() ||
                word.text.starts_with("activation-checkpoint:"))) {
      made_.settings.push_back(given(word, word.text.substr(0, colon)));
      made_.settings.back().words = {word.text.substr(colon + 1)};
    } else if (!made_.settings.empty() && belongs_to(made_.settings.back(), word)) {
      made_.settings.back().words.push_back(word.text);
    }
  }

  /// One note for all: each stands in a line of its own in many scripts.
  void note_unknown(std::size_t first) {
    constexpr std::size_t kMost = 8;
    std::vector<std::string> names;
    const ShellWord* place = nullptr;
    for (std::size_t i = first; i < command_.words.size() && names.size() <= kMost; ++i) {
      const ShellWord& word = command_.words[i];
      std::vector<std::string> unknown = word.unknown;
      if (word.line == 0 && is_unknown(word)) unknown = {word.text};
      for (const std::string& each : unknown) {
        const std::string name = shown(each);
        if (std::ranges::any_of(names, [&](const std::string& known) {
              return known == name || known.starts_with(name + " (");
            })) {
          continue;
        }
        const bool elsewhere = place != nullptr && place->line != word.line;
        names.push_back(elsewhere ? fmt::format("{} (line {})", name, word.line) : name);
        if (place == nullptr) place = &word;
      }
    }
    if (place == nullptr) return;
    const bool more = names.size() > kMost;
    if (more) names.resize(kMost);
    made_.notes.push_back(
        {made_.file, place->line, place->column, "",
         fmt::format(
             "not known: {}{}; kept as text where it is a word of a flag, flags in it are not read",
             fmt::join(names, ", "), more ? " and more" : ""),
         "set it in the script, or give the flags as a command behind --"});
  }

  void launcher_key(const LauncherFlag& flag) {
    const std::optional<AccelerateKey> key = accelerate_key(flag);
    if (!key) return;
    GivenSetting setting = given({"", flag.line, flag.column}, key->name);
    setting.path = "/" + key->name;
    std::ranges::replace(setting.path, '.', '/');
    setting.open = is_open(key->value);
    JsonValue value;
    if (!setting.open && !set_plain_scalar(key->value, value).empty()) return;
    if (value.kind == JsonValue::Kind::boolean) {  // argparse hands the word on
      value.kind = JsonValue::Kind::string;
      value.string = key->value;
    }
    value.line = flag.line;
    value.column = flag.column;
    if (!setting.open) setting.words = {text_of(value)};
    setting.value = std::move(value);
    made_.launcher.push_back(std::move(setting));
  }

  const WrittenFile* written(std::string_view name) const {
    if (given_.has(name)) return nullptr;
    const auto at = std::ranges::find(command_.files, name, &WrittenFile::name);
    return at == command_.files.end() ? nullptr : &*at;
  }

  /// Files that the script writes and that a flag of the launcher or of the program names.
  void read_written_files() {
    constexpr auto kNaming = std::to_array<std::string_view>(
        {"--deepspeed", "--deepspeed-config", "--deepspeed-config-file", "--ds-config",
         "--config-file", "--yaml-cfg", "--hostfile", "-H"});
    for (std::size_t i = 0; i < command_.words.size(); ++i) {
      const ShellWord& word = command_.words[i];
      const std::size_t equals = word.text.find('=');
      const bool joint = word.text.starts_with("--") && equals != std::string::npos;
      std::string flag = joint   ? word.text.substr(0, equals)
                         : i > 0 ? command_.words[i - 1].text
                                 : std::string();
      const WrittenFile* file = written(joint ? word.text.substr(equals + 1) : word.text);
      if (file == nullptr) continue;
      std::ranges::replace(flag, '_', '-');
      const bool names = std::ranges::find(kNaming, flag) != kNaming.end();
      if (names) read_written(*file);
    }
  }

  void read_written(const WrittenFile& file) {
    Diagnostics problems;
    if (is_host_file(file.text)) {
      Result<HostFile> hosts = read_host_file(file.text, file.name);
      if (!hosts) problems = hosts.problems();
      if (hosts) given_.hosts = *std::move(hosts);
    } else {
      Result<Configuration> read = read_configuration(quoted_variables(file.text), file.name);
      if (!read) problems = read.problems();
      if (read) written_.push_back(placed(*std::move(read), file));
    }
    if (problems.empty()) {
      given_.names.push_back(file.name);
      return;
    }
    made_.notes.push_back({made_.file, file.line + std::max(problems.front().line - 1, 0), 0, "",
                           fmt::format("{}, which the script writes, is not read: {}",
                                       shown(file.name), problems.front().message),
                           "give it as a file too"});
  }

  /// A written file stands in its script.
  Configuration placed(Configuration configuration, const WrittenFile& file) const {
    for (auto* settings : {&configuration.settings, &configuration.nulls}) {
      for (GivenSetting& each : *settings) {
        each.file = made_.file;
        each.line += file.line - 1;
      }
    }
    return configuration;
  }

  const ShellCommand& command_;
  GivenFiles given_;
  Configuration made_;
  std::vector<Configuration> written_;
};

}  // namespace

Result<Configuration> configuration_of_command(const ShellCommand& command, const std::string& file,
                                               const GivenFiles& given) {
  return CommandReader(command, file, given).read();
}

}  // namespace shardwise
