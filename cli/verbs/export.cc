#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/flags/output_flags.h"
#include "cli/terminal.h"
#include "cli/texts/fit_text.h"
#include "cli/verbs.h"
#include "planner/export/export_folder.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/kept_of.h"
#include "planner/export/plan_fit.h"
#include "planner/files/atomic_file_set.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/json/regular_file.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestNote = 2000;

struct ExportFlags {
  std::string plan;
  std::string to;
  std::string model;
  std::string output;
  bool json = false;
};

/// The text of the config.json of the plan's model, for a script that builds the model from it.
Result<std::string> model_config(const Plan& plan, const std::string& named) {
  const std::string& name = named.empty() ? plan.model.name : named;
  const Result<CatalogueFile> file = find_in_catalogue("models", name);
  if (!file) return file.problems();
  const Result<ModelSpec> model = load_model(name);
  if (!model) return model.problems();
  ModelSpec own = plan.model;
  own.name = model->name;
  own.source = model->source;
  if (*model != own) {
    return Diagnostic{"command line",
                      0,
                      0,
                      "--model",
                      fmt::format("{} is another model than the plan's", name),
                      "name the config.json that the plan was made with"};
  }
  return read_file(file->path);
}

/// Problems that say no place are of the plan.
Diagnostics of_file(Diagnostics problems, const std::string& plan) {
  for (Diagnostic& each : problems) {
    if (each.file.empty() || each.file == "command line") each.file = plan;
  }
  return problems;
}

/// Problems of a framework that cannot run the plan, with those that can.
Diagnostics with_others(Diagnostics problems, const Plan& plan) {
  const std::vector<std::string> others = frameworks_for(plan);
  if (!others.empty() && !problems.empty()) {
    problems.back().hint += fmt::format(", or export --to {}", fmt::join(others, " or "));
  }
  return problems;
}

Diagnostic wrong_folder(const std::string& message, const std::string& hint) {
  return {"command line", 0, 0, "--output", message, hint};
}

/// What a former export wrote into a folder; nothing of one that is not there.
Result<std::vector<std::string>> former_files(const std::string& folder) {
  if (folder == "-") return wrong_folder("- is no folder", "an export is several files");
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    return wrong_folder(folder + " is no folder", "an export is several files");
  }
  const std::string script = folder + "/run.sh";
  if (!fs::exists(fs::symlink_status(script, error))) return std::vector<std::string>();
  const Result<std::string> text = read_regular_file(script, SymbolicLinks::refused);
  return text ? files_of_former(*text) : std::vector<std::string>();
}

/// Files in the way of an export that no export wrote.
Diagnostics foreign_files(const std::string& folder, const std::vector<ExportedFile>& files,
                          const std::vector<std::string>& former) {
  Diagnostics problems;
  for (const ExportedFile& each : files) {
    std::error_code error;
    const std::string path = folder + "/" + each.name;
    if (!fs::exists(fs::symlink_status(path, error))) continue;
    if (std::ranges::find(former, each.name) != former.end()) continue;
    problems.push_back(wrong_folder(path + " is there and no export wrote it",
                                    "name another folder, or take the file away"));
  }
  return problems;
}

/// Takes away what a former export wrote and this one has not.
void remove_stale(const std::string& folder, const std::vector<ExportedFile>& files,
                  const std::vector<std::string>& former) {
  for (const std::string& name : former) {
    if (std::ranges::find(files, name, &ExportedFile::name) != files.end()) continue;
    std::error_code error;
    const fs::path path = fs::path(folder) / name;
    if (fs::is_directory(fs::symlink_status(path, error))) continue;
    fs::remove(path, error);
    if (error) throw IoError(fmt::format("{}: {}", path.string(), error.message()));
  }
}

std::string export_json(const Export& made, const PlanFit& fit, const Framework& framework,
                        const std::string& folder, const std::vector<ExportedFile>& files) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.export/1");
  json.member("framework", framework.name);
  json.member("folder", folder);
  json.begin_array("files");
  for (const ExportedFile& each : files) json.element(std::string_view(each.name));
  json.end_array();
  write_fit(json, fit);
  json.begin_array("substitutions");
  for (const Substitution& each : made.substitutions) {
    json.begin_object();
    json.member("field", each.field);
    json.member("from", each.from);
    json.member("to", each.to);
    json.member("because", each.because);
    if (!each.script.empty()) {
      json.begin_array("script");
      for (const std::string& line : each.script) json.element(std::string_view(line));
      json.end_array();
    }
    if (each.priced) {
      json.member("memory_change_bytes", each.memory_change.value());
      json.member("step_time_change_s", each.time_change.value());
    }
    json.end_object();
  }
  json.end_array();
  json.member("memory_change_bytes", made.memory_change.value());
  json.member("step_time_change_s", made.time_change.value());
  json.begin_array("by_script");
  for (const ScriptField& each : framework.by_script) {
    json.begin_object();
    json.member("field", each.field);
    json.member("says", each.says);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

ExitCode run_export(const ExportFlags& flags) {
  const Result<Framework> framework = load_framework(flags.to, "--to");
  if (!framework) return refuse(framework.problems());
  Result<Plan> plan = read_plan(flags.plan, [&](const Plan& read) {
    Diagnostics broken = check_plan(read);
    std::ranges::move(check_kept(*framework, read), std::back_inserter(broken));
    return broken;
  });
  if (!plan) return refuse(plan.problems());
  const std::optional<std::string> router = take_missing_router(*plan);
  const std::string folder = flags.output.empty() ? flags.to : flags.output;
  const Result<std::vector<std::string>> former = former_files(folder);
  if (!former) return refuse(former.problems());
  const Result<Export> made = export_plan(*plan, *framework);
  if (!made) return refuse(of_file(with_others(made.problems(), *plan), flags.plan));
  const PlanFit fit = plan_fit(made->plan, *framework);
  std::string config;
  if (framework->form == ConfigurationForm::script) {
    Result<std::string> read = model_config(*plan, flags.model);
    if (!read) return refuse(read.problems());
    config = *std::move(read);
  }
  std::string first_note = fit.fits() ? "" : fit.line();
  if (router) first_note += (first_note.empty() ? "" : "\n") + *router;
  const Result<std::vector<ExportedFile>> files =
      export_folder(*made, *framework, config, first_note);
  if (!files) return refuse(of_file(files.problems(), flags.plan));
  const Diagnostics foreign = foreign_files(folder, *files, *former);
  if (!foreign.empty()) return refuse(foreign);

  const std::vector<NamedFile> inputs = {{"PLAN", flags.plan}};
  std::vector<NamedFile> outputs;
  for (const ExportedFile& each : *files) outputs.push_back({"--output", folder + "/" + each.name});
  const Diagnostics wrong = prepare_outputs(outputs, inputs, flags.json);
  if (!wrong.empty()) return refuse(wrong);
  AtomicFileSet set;
  set.add_folder(folder);
  for (const ExportedFile& each : *files) set.add(folder + "/" + each.name, each.text);
  set.keep();
  remove_stale(folder, *files, *former);

  if (flags.json) {
    fmt::print("{}", export_json(*made, fit, *framework, folder, *files));
    return ExitCode::done;
  }
  if (!fit.fits()) fmt::print("{}", fit_text(fit, wants_colour()));
  if (router) fmt::print("{}\n", wrap(*router, kTextWidth, 2));
  for (const std::string& note : export_notes(*made, *framework)) {
    const std::size_t first = std::min(note.find('\n'), note.size());
    fmt::print("{}{}\n", wrap(shown(note.substr(0, first), kLongestNote), kTextWidth, 2),
               note.substr(first));
  }
  std::string names;
  for (const ExportedFile& each : *files) names += (names.empty() ? "" : ", ") + each.name;
  fmt::print("{}\n", wrap(fmt::format("wrote {} for {} ({}): {}", shown(folder, kLongestNote),
                                      framework->label, framework->code, names),
                          kTextWidth, 2));
  return ExitCode::done;
}

}  // namespace

void add_export(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("export", "Write a plan as the configuration of a training framework");
  auto flags = std::make_shared<ExportFlags>();
  verb->add_option("plan", flags->plan, "A plan.json, or a report with a plan in it")
      ->required()
      ->type_name("PLAN");
  verb->add_option("--to", flags->to,
                   "megatron-lm, megatron-fsdp, torchtitan, torch-fsdp2, accelerate or deepspeed")
      ->required()
      ->type_name("NAME");
  verb->add_option("--model", flags->model,
                   "Of a plan whose model is not in the catalogue: its config.json")
      ->type_name("NAME|FILE");
  verb->add_option("-o,--output", flags->output, "Folder for the files [the framework's name]")
      ->type_name("DIR");
  verb->add_flag("--json", flags->json, "Print what was written and substituted as JSON");
  verb->footer(
      "Example\n"
      "  shardwise export plan.json --to megatron-lm -o job\n"
      "\n"
      "Exit codes\n"
      "  0 done, also where the plan does not fit, which is printed first\n"
      "  2 bad input, or a plan that the framework cannot run\n"
      "  3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_export(*flags); }; });
}

}  // namespace shardwise::cli
