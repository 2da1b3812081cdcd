#include "planner/export/configuration/configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "planner/export/configuration/accelerate_deepspeed.h"
#include "planner/export/configuration/command_configuration.h"
#include "planner/export/configuration/framework_marks.h"
#include "planner/export/configuration/other_files.h"
#include "planner/export/configuration/yaml_text.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/launch/accelerate_flags.h"
#include "planner/export/shell/shell_text.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// The settings that a JSON or YAML text has: keys of keys joined by dots.
void flatten(const JsonValue& value, const std::string& name, const std::string& path,
             const std::string& file, Configuration& made) {
  if (value.kind == JsonValue::Kind::object && !value.members.empty()) {
    for (const JsonMember& each : value.members) {
      flatten(each.value, name.empty() ? each.key : name + "." + each.key,
              json_pointer(path, each.key), file, made);
    }
    return;
  }
  GivenSetting setting;
  setting.name = name;
  setting.file = file;
  setting.line = value.line;
  setting.column = value.column;
  setting.path = path;
  setting.value = value;
  if (value.kind == JsonValue::Kind::null) {
    made.nulls.push_back(std::move(setting));
    return;
  }
  setting.list = value.kind == JsonValue::Kind::array;
  setting.object = value.kind == JsonValue::Kind::object;
  if (setting.list) {
    for (const JsonValue& each : value.elements) setting.words.push_back(text_of(each));
  } else if (!setting.object) {
    setting.words = {text_of(value)};
  }
  made.settings.push_back(std::move(setting));
}

Result<Configuration> from_keys(const JsonValue& root, const std::string& file) {
  if (root.kind != JsonValue::Kind::object) return not_one(file, "no object", "keys and values");
  const JsonValue* schema = root.find("schema");
  if (schema != nullptr && schema->string.starts_with("shardwise.") &&
      schema->string != "shardwise.settings/1") {
    return not_one(file, schema->string, "give a plan to shardwise export, simulate or report");
  }
  if (root.find("model_type") != nullptr || root.find("architectures") != nullptr) {
    return not_one(file, "a model's config.json", "give it as --model");
  }
  if (std::optional<Diagnostic> other = of_other_program(root, file)) return *std::move(other);
  Configuration made;
  made.file = file;
  flatten(root, "", "", file, made);
  return made;
}

/// Takes the flags of parallelism_config away where accelerate does not read them.
/// Source: accelerate 1.15.0, commands/launch.py:1248 and utils/launch.py:397.
void drop_unread_parallelism(Configuration& made) {
  const auto is_of_mesh = [](const GivenSetting& each) {
    return each.name.starts_with("parallelism_config.");
  };
  const auto uses = [](const GivenSetting& each) { return each.name == kUsesParallelismConfig; };
  const bool read =
      std::ranges::any_of(made.launcher, uses) || std::ranges::any_of(made.settings, is_of_mesh);
  std::erase_if(made.launcher, uses);
  if (read) return;
  for (const GivenSetting& each : made.launcher) {
    if (!is_of_mesh(each)) continue;
    made.notes.push_back({each.file, each.line, each.column, each.path,
                          "accelerate does not read this flag without --use_parallelism_config",
                          "add that flag"});
  }
  std::erase_if(made.launcher, is_of_mesh);
}

/// Flags of `accelerate launch` count before its YAML; with --use_fsdp and --multi_gpu they need
/// none. Beside the file of another framework --multi_gpu says no more than that there are ranks.
void state_launcher_flags(Configuration& made) {
  const auto is_type = [](const GivenSetting& each) { return each.name == "distributed_type"; };
  const auto stated = std::ranges::find_if(made.launcher, is_type);
  if (std::ranges::none_of(made.settings, is_type)) {
    if (stated == made.launcher.end()) return;
    const bool is_ddp = stated->words == std::vector<std::string>{"MULTI_GPU"};
    const bool has_file = std::ranges::any_of(
        made.settings, [](const GivenSetting& each) { return each.value.has_value(); });
    if (is_ddp && has_file) return;
  }
  std::erase_if(made.launcher,
                [](const GivenSetting& each) { return each.name == kNamesConfiguration; });
  drop_unread_parallelism(made);
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < made.settings.size(); ++i) places[made.settings[i].name] = i;
  for (GivenSetting& each : std::exchange(made.launcher, {})) {
    const auto [at, is_new] = places.try_emplace(each.name, made.settings.size());
    if (is_new) made.settings.emplace_back();
    made.settings[at->second] = std::move(each);
  }
}

bool has_yaml_name(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml");
}

/// YAML in braces is not JSON: "{num_processes: 8}".
bool is_json(std::string_view text, const std::string& file) {
  if (file.ends_with(".json")) return true;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return !has_yaml_name(file) && first != std::string_view::npos && text[first] == '{';
}

/// The first line that says something has a key: "name:" or "name: value".
bool is_yaml(std::string_view text, const std::string& file) {
  if (has_yaml_name(file)) return true;
  if (file.ends_with(".sh") || file.ends_with(".txt")) return false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#' || line == "---") continue;
    const std::size_t colon = line.find(':');
    return colon != std::string_view::npos && line.find(' ') > colon &&
           (colon + 1 == line.size() || line[colon + 1] == ' ');
  }
  return false;
}

/// The JSON of DeepSpeed that an argument of a training script names.
std::optional<Diagnostic> file_not_given(const Configuration& configuration) {
  constexpr std::array<std::string_view, 4> kNaming = {"--deepspeed", "--deepspeed_config",
                                                       "--deepspeed-config", "--ds_config"};
  for (const GivenSetting& each : configuration.settings) {
    const bool names = std::ranges::find(kNaming, each.name) != kNaming.end();
    if (!names || each.words.size() != 1) continue;
    return Diagnostic{each.file,
                      each.line,
                      each.column,
                      each.path,
                      fmt::format("{} is not given", shown(each.words.front())),
                      "give DeepSpeed's JSON too"};
  }
  return std::nullopt;
}

/// Arguments that tell what a command is of, and that no framework is planned by alone.
std::optional<Diagnostic> not_read_alone(const GivenSetting& setting) {
  constexpr std::array<std::string_view, 4> kOfTrainer = {
      "--fsdp", "--fsdp_config", "--per_device_train_batch_size", "--per-device-train-batch-size"};
  constexpr std::array<std::string_view, 2> kOfToml = {"--job.config_file", "--job.config-file"};
  Diagnostic problem{setting.file, setting.line, setting.column, setting.path, "", ""};
  if (std::ranges::find(kOfTrainer, setting.name) != kOfTrainer.end()) {
    problem.message = "an argument of transformers' Trainer, without a file that says the sharding";
    problem.hint = "give accelerate's YAML or DeepSpeed's JSON with it";
    return problem;
  }
  if (std::ranges::find(kOfToml, setting.name) != kOfToml.end()) {
    problem.message = "an argument of torchtitan before 0.3: later versions read no TOML";
    problem.hint = "--module, --config and the overrides";
    return problem;
  }
  return std::nullopt;
}

/// The framework that is named, or known by its settings.
Result<Framework> likely_framework(const Configuration& configuration, const std::string& named,
                                   const std::string& flag) {
  if (!named.empty()) return load_framework(named, flag);
  for (const GivenSetting& each : configuration.settings) {
    // settings.json of our scripts says whose it is.
    if (each.name == "framework" && each.words.size() == 1) {
      return load_framework(each.words.front(), "/framework");
    }
  }
  std::optional<Framework> best;
  std::size_t most = 0;
  for (const std::string& name : framework_names()) {
    Result<Framework> framework = load_framework(name, flag);
    if (!framework) return framework.problems();
    const std::size_t known = marks_of(*framework, configuration);
    if (known <= most) continue;
    most = known;
    best = *std::move(framework);
  }
  if (best) return *std::move(best);
  if (std::optional<Diagnostic> problem = file_not_given(configuration)) return *std::move(problem);
  for (const GivenSetting& each : configuration.settings) {
    if (std::optional<Diagnostic> problem = not_read_alone(each)) return *std::move(problem);
  }
  return Diagnostic{
      configuration.file,
      configuration.file == "command line" ? 0 : 1,
      0,
      "",
      "has no setting by which a framework is known",
      configuration.file.ends_with("run.sh")
          ? "of an exported folder give what stands beside run.sh: arguments.txt, ds_config.json, "
            "accelerate.yaml or settings.json"
          : fmt::format("{} NAME says of which it is: {}", flag,
                        fmt::join(framework_names(), ", "))};
}

}  // namespace

void assume_several_gpus(Configuration& job) {
  const auto stated = [&](std::string_view name) {
    return std::ranges::find(job.launcher, name, &GivenSetting::name);
  };
  const auto trainer =
      std::ranges::find(job.settings, "--per_device_train_batch_size", &GivenSetting::name);
  const auto processes = stated("num_processes");
  const bool by_accelerate = processes != job.launcher.end();
  if (!by_accelerate && (job.ranks < 2 || trainer == job.settings.end())) return;
  const std::int64_t ranks = !by_accelerate || processes->words.size() != 1
                                 ? job.ranks
                                 : parse_integer(processes->words.front()).value_or(0);
  if (ranks < 2) return;
  if (stated(kNamesConfiguration) != job.launcher.end()) return;
  if (stated("distributed_type") != job.launcher.end() || file_not_given(job)) return;
  constexpr std::array<std::string_view, 2> kSharding = {"--fsdp_config", "--deepspeed"};
  const bool shards =
      std::ranges::find(job.settings, "--fsdp", &GivenSetting::name) != job.settings.end();
  for (const GivenSetting& each : job.settings) {
    if (each.value || std::ranges::find(kSharding, each.name) != kSharding.end()) return;
  }
  if (framework_of(job, "", "--from")) return;
  GivenSetting type = by_accelerate ? *processes : *trainer;
  type.name = "distributed_type";
  type.path = "/distributed_type";
  type.words = {"MULTI_GPU"};
  type.list = false;
  type.value = JsonValue();
  type.value->kind = JsonValue::Kind::string;
  type.value->string = "MULTI_GPU";
  const char* const says = by_accelerate
                               ? "several processes without a file are those of --multi_gpu, "
                                 "unless the machine has a default_config.yaml"
                               : "transformers' Trainer without a file and without --fsdp is "
                                 "DistributedDataParallel";
  if (!shards) {
    job.notes.push_back({type.file, type.line, type.column, "", says,
                         "give accelerate's YAML or DeepSpeed's JSON if there is one"});
  }
  job.launcher.push_back(std::move(type));
  state_launcher_flags(job);
}

Result<Configuration> read_configuration(std::string_view text, const std::string& file,
                                         const GivenFiles& given, const ShellStart& start) {
  if (is_json(text, file)) {
    const Result<JsonValue> root = parse_json(text, file);
    return root ? from_keys(*root, file) : root.problems();
  }
  if (is_yaml(text, file)) {
    const Result<JsonValue> root = parse_yaml(text, file);
    return root ? from_keys(*root, file) : root.problems();
  }
  if (file.ends_with(".toml")) {
    return not_one(file, "TOML",
                   "torchtitan reads none since 0.3: give --module, --config and the overrides");
  }
  const Result<ShellCommand> command = read_shell(text, file, start);
  if (!command) return command.problems();
  return configuration_of_command(*command, file, given);
}

Result<Configuration> configuration_of_words(const std::vector<std::string>& words,
                                             const GivenFiles& given) {
  for (const std::string& word : words) {
    if (control_character(word) == word.size() && first_not_utf8(word) == word.size()) continue;
    return Diagnostic{
        "command line", 0, 0, "", fmt::format("a control character in {}", shown(word)),
        "plain text"};
  }
  ShellCommand command;
  std::size_t first = 0;
  for (; first < words.size(); ++first) {
    const std::size_t at = words[first].find('=');
    if (at == std::string::npos || words[first].starts_with('-')) break;
    command.environment.push_back({words[first], 0, 0});
  }
  for (; first < words.size(); ++first) command.words.push_back({words[first], 0, 0});
  Result<Configuration> job = configuration_of_command(command, "command line", given);
  if (!job) return job;
  Diagnostics problems = take_accelerate_for_launcher(*job);
  if (!problems.empty()) return problems;
  return job;
}

Result<Configuration> joined(std::vector<Configuration> all) {
  Configuration made = std::move(all.front());
  Diagnostics problems;
  std::map<std::string, const GivenSetting*> known;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::vector<GivenSetting> before = made.settings;
    known.clear();
    for (const GivenSetting& each : before) known[each.name] = &each;
    for (GivenSetting& each : all[i].settings) {
      const auto at = known.find(each.name);
      if (at != known.end() && at->second->words != each.words) {
        problems.push_back({each.file, each.line, each.column, each.path,
                            fmt::format("{}, but {} has {}", fmt::join(each.words, " "),
                                        at->second->file, fmt::join(at->second->words, " ")),
                            "state it once"});
        continue;
      }
      if (at == known.end()) made.settings.push_back(std::move(each));
    }
    std::ranges::move(all[i].environment, std::back_inserter(made.environment));
    std::ranges::move(all[i].sourced, std::back_inserter(made.sourced));
    std::ranges::move(all[i].unread, std::back_inserter(made.unread));
    std::ranges::move(all[i].notes, std::back_inserter(made.notes));
    std::ranges::move(all[i].nulls, std::back_inserter(made.nulls));
    std::ranges::move(all[i].launcher, std::back_inserter(made.launcher));
    if (made.ranks == 0) made.ranks = all[i].ranks;
    if (made.program.empty()) made.program = std::move(all[i].program);
  }
  if (!problems.empty()) return problems;
  state_launcher_flags(made);
  return made;
}

std::string flag_of_key(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  std::string flag = "--" + (dot == std::string::npos ? key : key.substr(dot + 1));
  std::ranges::replace(flag, '_', '-');
  return flag;
}

Result<Framework> framework_of(const Configuration& configuration, const std::string& named,
                               const std::string& flag) {
  Result<Framework> framework = likely_framework(configuration, named, flag);
  if (!framework) return framework;
  if (!named.empty()) {
    std::optional<Diagnostic> wrong = named_wrongly(*framework, configuration, flag);
    if (wrong) return *std::move(wrong);
  }
  Diagnostics problems = files_of_others(*framework, configuration);
  if (!problems.empty()) return problems;
  return framework;
}

}  // namespace shardwise
