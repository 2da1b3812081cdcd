#include "cli/configurations.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "cli/terminal.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/framework/installed_version.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

constexpr char kGuard = '\x01';

}  // namespace

void guard_command(std::vector<std::string>& words) {
  if (words.size() < 2 || (words[1] != "import" && words[1] != "check")) return;
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return;
  std::vector<std::string> command(dashes + 1, words.end());
  for (std::string& each : command) each.insert(0, 1, kGuard);
  words.erase(dashes, words.end());
  words.insert(words.begin() + 2, command.begin(), command.end());
}

std::string unguarded(const std::string& word) {
  return word.starts_with(kGuard) ? word.substr(1) : word;
}

void add_configuration_flags(CLI::App& verb, ConfigurationFlags& flags) {
  verb.add_option("configuration", flags.words,
                  "Files: arguments, a launch script, DeepSpeed's JSON, accelerate's YAML; and, "
                  "behind --, the words of a command: a launcher's, or bash FILE ARGUMENTS")
      ->required()
      ->type_name("FILE|WORD");
  verb.add_option("--from", flags.framework,
                  "megatron-lm, megatron-fsdp, torchtitan, torch-fsdp2, accelerate or deepspeed "
                  "[known by its settings]")
      ->type_name("NAME");
  verb.add_option("--installed", flags.installed,
                  "Version of the framework where the job runs: says if it differs from the one "
                  "these rules were read from")
      ->type_name("VERSION");
}

Result<std::string> version_paragraph(const ConfigurationFlags& flags, const Framework& framework) {
  Result<std::string> note = version_note(framework, flags.installed, "--installed");
  if (!note || note->empty()) return note;
  return wrap("note: " + *note, kTextWidth, 2) + "\n";
}

ExitCode refuse_configuration(const Configuration& configuration, const Diagnostics& problems) {
  fmt::print(stderr, "{}", notes_text(configuration));
  return refuse(problems);
}

std::string notes_text(const Configuration& configuration) {
  std::string text;
  for (Diagnostic each : configuration.notes) {
    const std::string hint = std::exchange(each.hint, "");
    text += wrap(fmt::format("note: {} ({})", to_string(each), hint), kTextWidth, 2) + "\n";
  }
  return text;
}

Result<Configuration> read_configurations(const ConfigurationFlags& flags) {
  std::vector<JobFile> files;
  std::vector<std::string> command;
  for (const std::string& word : flags.words) {
    if (word.starts_with(kGuard)) {
      command.push_back(unguarded(word));
    } else {
      files.push_back({word, "", {}});
    }
  }
  if (std::optional<JobFile> script = script_of_command(command)) {
    files.push_back(*std::move(script));
    command.clear();
  }
  Diagnostics problems;
  std::erase_if(files, [&](JobFile& each) {
    Result<std::string> text = read_file(each.name);
    if (text) {
      each.text = *std::move(text);
    } else {
      problems.insert(problems.end(), text.problems().begin(), text.problems().end());
    }
    return !text.ok();
  });
  if (files.empty() && command.empty()) return problems;
  Result<Configuration> read = read_job(files, command);
  if (problems.empty()) return read;
  if (!read) problems.insert(problems.end(), read.problems().begin(), read.problems().end());
  return problems;
}

}  // namespace shardwise::cli
