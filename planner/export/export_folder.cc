#include "planner/export/export_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/framework/setting_values.h"
#include "planner/export/kept_of.h"
#include "planner/export/plan_comparison.h"
#include "planner/export/write_configuration.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongestName = 200;

/// \param step  of the plan as it was given
std::string time_words(Seconds change, Seconds step) {
  const double share = step.value() > 0 ? change.value() / step.value() : 0;
  if (std::abs(share) < 0.0005) return "the same step time";
  return fmt::format("{:.1f} % {} time a step", std::abs(share) * 100, share > 0 ? "more" : "less");
}

/// Whether a word has a variable that nobody knew where the plan was imported: $1, ${DATA}.
bool has_open_word(const KeptSetting& kept) {
  return names_variable(kept.value) || std::ranges::any_of(kept.words, names_variable);
}

/// The kept settings that are written.
std::vector<KeptSetting> kept_for(const Framework& framework, const Plan& plan) {
  if (plan.kept.framework != framework.name) return {};
  std::vector<KeptSetting> kept = plan.kept.settings;
  std::erase_if(kept, has_open_word);
  return kept;
}

/// What of the plan's kept settings is not written.
std::vector<std::string> lost_notes(const Framework& framework, const KeptSettings& kept) {
  std::vector<std::string> notes;
  if (kept.framework.empty()) return notes;
  std::vector<std::string> names;
  if (kept.framework != framework.name) {
    for (const KeptSetting& each : kept.settings) names.push_back(shown(each.name));
    notes.push_back(fmt::format(
        "not written, since the plan has them from a configuration of {}: {}; state what {} needs "
        "of them in its own words",
        kept.framework, fmt::join(names, ", "), framework.label));
    return notes;
  }
  for (const KeptSetting& each : kept.settings) {
    if (!has_open_word(each)) continue;
    names.push_back(shown(each.value.empty()
                              ? fmt::format("{} {}", each.name, fmt::join(each.words, " "))
                              : fmt::format("{} {}", each.name, each.value)));
  }
  if (names.empty()) return notes;
  const std::string where =
      framework.takes_words() ? "put them behind run.sh" : "state them in " + framework.file;
  notes.push_back(fmt::format("not written, since nobody knows the variables here: {}; {}",
                              fmt::join(names, ", "), where));
  return notes;
}

std::int64_t gpus_per_node(const Plan& plan) {
  return std::min(plan.cluster.gpus_per_node, plan.layout.world());
}

std::int64_t nodes_of(const Plan& plan) {
  const std::int64_t each = gpus_per_node(plan);
  return (plan.layout.world() + each - 1) / each;
}

/// The program as run.sh names it: its own files stand beside it.
std::string program_words(const Framework& framework) {
  const auto beside = [](const std::string& file) { return fmt::format("\"$here/{}\"", file); };
  if (framework.form == ConfigurationForm::script) return beside(framework.program);
  std::string words = framework.program;
  const std::size_t at = words.find(" " + framework.file);
  if (at != std::string::npos) words.replace(at + 1, framework.file.size(), beside(framework.file));
  return words;
}

/// What a shell knows a choice of the configuration by: "activation-checkpoint:*".
std::string choice_patterns(const Export& made, const Framework& framework) {
  std::string patterns;
  const auto add = [&](const std::string& name) {
    if (name.starts_with('-')) return;
    patterns += (patterns.empty() ? "" : "|") + name.substr(0, name.find(':')) + ":*";
  };
  for (const SettingSpec& each : framework.settings) {
    if (each.place == SettingPlace::configuration) add(each.name);
  }
  for (const KeptSetting& each : kept_for(framework, made.plan)) add(each.name);
  return patterns;
}

/// What run.sh tells transformers' Trainer: "--optim adamw_bnb_8bit"; "" for nothing.
std::string trainer_flags(const Export& made) {
  std::string flags;
  for (const WrittenSetting& each : made.settings) {
    if (each.spec->place != SettingPlace::script) continue;
    flags += (flags.empty() ? "" : " ") + each.spec->name + " " + each.value;
  }
  return flags;
}

/// The lines by which run.sh starts the job.
std::string launch_lines(const Export& made, const Framework& framework) {
  std::string words;
  if (framework.launcher == "accelerate") {
    words = fmt::format(
        "accelerate launch --config_file \"$here/{}\" \\\n"
        "  --machine_rank \"$node\" --main_process_ip \"$first\" --main_process_port \"$port\" "
        "\\\n",
        framework.file);
  } else {
    words = fmt::format(
        "torchrun --nnodes {} --nproc-per-node {} --node-rank \"$node\" \\\n"
        "  --master-addr \"$first\" --master-port \"$port\" \\\n",
        nodes_of(made.plan), gpus_per_node(made.plan));
  }
  const std::string program = program_words(framework);
  if (!framework.takes_words()) {
    const std::string trainer = trainer_flags(made);
    const std::string told = trainer.empty() ? "" : fmt::format(" ${{TRAINER_FLAGS-{}}}", trainer);
    // Without quotes several words stay several.
    const bool splits = !told.empty() || program.find("CONFIG_FLAGS") != std::string::npos;
    return fmt::format("{}exec {}  {}{} \"$@\"\n",
                       splits ? "# shellcheck disable=SC2086  # they are several words\n" : "",
                       words, program, told);
  }
  const std::string read =
      fmt::format("arguments=()\neval \"arguments=($(<\"$here/{}\"))\"\n", framework.file);
  if (framework.form == ConfigurationForm::arguments) {
    return fmt::format("{}exec {}  {} \"${{arguments[@]}}\" \"$@\"\n", read, words, program);
  }
  return fmt::format(
      "{}# A choice, name:value, stands behind all flags.\n"
      "flags=()\n"
      "choices=()\n"
      "for word in \"${{arguments[@]}}\"; do\n"
      "  case $word in\n"
      "    {}) choices+=(\"$word\") ;;\n"
      "    *) flags+=(\"$word\") ;;\n"
      "  esac\n"
      "done\n"
      "exec {}  {} \"${{flags[@]}}\" \"$@\" \"${{choices[@]}}\"\n",
      read, choice_patterns(made, framework), words, program);
}

/// The lines by which run.sh says, once a job, that another version is installed.
std::string version_lines(const Framework& framework) {
  return fmt::format(
      "installed=$(python3 -c 'from importlib.metadata import version\n"
      "print(version(\"{0}\"))' 2>/dev/null || true)\n"
      "if [ \"$node\" = 0 ] && [ -n \"$installed\" ] && [ \"${{installed%%+*}}\" != {1} ]; then\n"
      "  echo \"run.sh: made for {0} {1}, installed is $installed: settings may differ\" >&2\n"
      "fi\n",
      framework.package, framework.version);
}

/// The lines by which run.sh finds the first node: of several, each must know it.
std::string first_node_lines(std::int64_t nodes) {
  const std::string lines =
      "node=${NODE_RANK:-${SLURM_NODEID:-0}}\n"
      "first=${MASTER_ADDR:-}\n";
  if (nodes == 1) return lines + "first=${first:-localhost}\n";
  return lines + fmt::format(
                     "if [ -z \"$first\" ] && [ -n \"${{SLURM_JOB_NODELIST:-}}\" ]; then\n"
                     "  first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                     "fi\n"
                     "if [ -z \"$first\" ]; then\n"
                     "  echo \"run.sh: a job of {} nodes needs MASTER_ADDR, the first of them, and "
                     "NODE_RANK\" >&2\n"
                     "  exit 2\n"
                     "fi\n",
                     nodes);
}

std::string run_script(const Export& made, const Framework& framework, const std::string& files) {
  const std::int64_t nodes = nodes_of(made.plan);
  const std::int64_t each = gpus_per_node(made.plan);
  return fmt::format(
      "#!/bin/bash\n"
      "{}{} on {} node{} of {} GPUs, for {} ({}).\n"
      "{}{}\n"
      "# By Slurm: srun --nodes={} --ntasks-per-node=1 --gpus-per-node={} --exclusive bash run.sh\n"
      "#   On shared nodes --cpus-per-task instead of --exclusive: a task has one CPU else.\n"
      "# By hand, on each node: NODE_RANK=0 MASTER_ADDR=first-node bash run.sh\n"
      "# Words behind run.sh are handed on: learning rate, data, checkpoints.\n"
      "set -euo pipefail\n"
      "here=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\" >/dev/null && pwd)\n"
      "# shellcheck source=/dev/null\n"
      ". \"$here/environment.sh\"\n"
      "{}"
      "port=${{MASTER_PORT:-29500}}\n"
      "{}{}",
      kExportedBy, shown(made.plan.model.name, kLongestName), nodes, nodes == 1 ? "" : "s", each,
      framework.label, framework.code, kExportedFiles, files, nodes, each, first_node_lines(nodes),
      version_lines(framework), launch_lines(made, framework));
}

/// What the job needs besides the plan, in the framework's words.
std::string still_needed(const Export& made, const Framework& framework) {
  if (framework.form == ConfigurationForm::script) {
    return fmt::format(
        "tokens are random: put the job's data into batches() of {}, --steps and --learning-rate "
        "behind run.sh",
        framework.scripts().back());
  }
  if (framework.form == ConfigurationForm::overrides) {
    return "data, tokenizer, learning rate and steps are the recipe's: put overrides such as "
           "--training.steps and --optimizer.param-groups.0.optimizer-kwargs.lr behind run.sh";
  }
  if (framework.form != ConfigurationForm::arguments) {
    const std::string trainer =
        framework.program.find("CONFIG_FLAGS") == std::string::npos
            ? ""
            : "; it is told the file by --deepspeed --deepspeed_config, as "
              "deepspeed.add_config_arguments() reads it, and by CONFIG_FLAGS=--deepspeed as "
              "transformers' Trainer does";
    return "TRAIN names your training script: put its own flags (data, learning rate, steps, "
           "checkpoints) behind run.sh" +
           trainer;
  }
  std::string missing;
  const std::vector<KeptSetting> kept = kept_for(framework, made.plan);
  const auto has = [&](const char* flag, const std::string& word) {
    return std::ranges::any_of(kept, [&](const KeptSetting& each) {
      const bool same = word.empty() || each.words == std::vector<std::string>{word};
      return each.name == flag && same;
    });
  };
  const auto is_said = [&](std::string_view flag) {
    if (flag == "--train-iters") return has("--train-samples", "");
    if (flag == "--data-path") return has("--mock-data", "") || has("--data-args-path", "");
    return flag == "--tokenizer-model" && has("--tokenizer-type", "NullTokenizer");
  };
  for (const char* flag : {"--tokenizer-type", "--tokenizer-model", "--data-path", "--lr",
                           "--train-iters", "--save"}) {
    if (has(flag, "") || is_said(flag)) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(flag);
  }
  if (missing.empty()) return "";
  return fmt::format("{} is told no {}: put what the job needs of them behind run.sh",
                     framework.label, missing);
}

}  // namespace

std::vector<std::string> export_notes(const Export& made, const Framework& framework) {
  std::vector<std::string> notes;
  for (const Substitution& each : made.substitutions) {
    const std::string effect = each.priced
                                   ? fmt::format("{}, {}", memory_words(each.memory_change),
                                                 time_words(each.time_change, made.planned_step))
                                   : "priced with those that follow";
    notes.push_back(fmt::format("{} {} instead of {}: {}; {}", each.field,
                                each.to.empty() ? "none" : each.to,
                                each.from.empty() ? "none" : each.from, each.because, effect));
    for (const std::string& line : each.script) {
      notes.back() += line.empty() ? "\n" : "\n    " + line;
    }
  }
  if (made.substitutions.size() > 1) {
    notes.push_back(fmt::format("all of these together: {}, {}", memory_words(made.memory_change),
                                time_words(made.time_change, made.planned_step)));
  }
  const Values facts = facts_of(made.plan);
  for (const ScriptField& each : framework.by_script) {
    const auto said = std::ranges::find(made.substitutions, each.field, &Substitution::field);
    if (said != made.substitutions.end()) continue;
    notes.push_back(fmt::format("your script decides {}, here {}: {}", each.field,
                                facts.at(each.field), each.says));
  }
  if (const std::string trainer = trainer_flags(made); !trainer.empty()) {
    notes.push_back(fmt::format(
        "run.sh tells transformers' Trainer {}; for a script that has no such argument, set "
        "TRAINER_FLAGS to nothing",
        trainer));
  }
  const bool asks = std::ranges::any_of(framework.settings, [](const SettingSpec& spec) {
    return spec.field == "model.norm_epsilon";
  });
  if (asks && facts.at("model.numerics_known") == "false") {
    notes.push_back(fmt::format(
        "epsilon of the norms and rotary base of {} are not in the plan: add {} from its "
        "config.json",
        shown(made.plan.model.name, kLongestName), "--norm-epsilon and --rotary-base"));
  }
  if (asks && facts.at("model.numerics_known") == "true" &&
      facts.at("model.rope_scaling") == "other") {
    notes.push_back(
        fmt::format("scaling of the rotary angles of {} is not in the plan: add its arguments from "
                    "config.json, such as --rope-type yarn",
                    shown(made.plan.model.name, kLongestName)));
  }
  const RouterNumerics& router = made.plan.model.router;
  if (asks && router.n_group > 1 && !router.sigmoid) {
    notes.push_back(fmt::format(
        "{} chooses groups of experts by the best expert of each, and {} by the sum of several: a "
        "token may have other experts",
        shown(made.plan.model.name, kLongestName), framework.label));
  }
  std::ranges::move(lost_notes(framework, made.plan.kept), std::back_inserter(notes));
  const std::string needed = still_needed(made, framework);
  if (!needed.empty()) notes.push_back(needed);
  return notes;
}

std::vector<std::string> files_of_former(std::string_view run_script) {
  std::vector<std::string> known = {"environment.sh", "notes.txt", "config.json", "run.sh"};
  for (const std::string& name : framework_names()) {
    const Result<Framework> framework = load_framework(name, "--to");
    if (!framework) continue;
    known.push_back(framework->file);
    for (std::string& script : framework->scripts()) known.push_back(std::move(script));
  }
  const std::vector<std::string> lines = split_at(std::string(run_script.substr(0, 4096)), '\n');
  std::vector<std::string> files;
  const bool ours =
      lines.size() > 3 && lines[1].starts_with(kExportedBy) && lines[2].starts_with(kExportedFiles);
  if (!ours) return files;
  for (std::string& name : split_at(lines[2].substr(kExportedFiles.size()), ' ')) {
    if (std::ranges::find(known, name) != known.end()) files.push_back(std::move(name));
  }
  return files;
}

Result<std::vector<ExportedFile>> export_folder(const Export& made, const Framework& framework,
                                                const std::string& model_config,
                                                const std::string& first_note) {
  const Diagnostics wrong = check_kept(framework, made.plan);
  if (!wrong.empty()) return wrong;
  std::vector<ExportedFile> files;
  files.push_back({framework.file,
                   configuration_text(framework, made.settings, kept_for(framework, made.plan))});
  files.push_back(
      {"environment.sh", "# shellcheck shell=bash\n" + environment_text(made.settings)});
  std::string notes = first_note.empty() ? "" : first_note + "\n";
  for (const std::string& note : export_notes(made, framework)) notes += note + "\n";
  if (!notes.empty()) files.push_back({"notes.txt", notes});
  for (const std::string& name : framework.scripts()) {
    const Result<std::string> script = read_beside(framework.name, name);
    if (!script) return script.problems();
    files.push_back({name, *script});
  }
  if (framework.form == ConfigurationForm::script) files.push_back({"config.json", model_config});
  std::string names = "run.sh";
  for (const ExportedFile& each : files) names += " " + each.name;
  files.push_back({"run.sh", run_script(made, framework, names)});
  return files;
}

}  // namespace shardwise
