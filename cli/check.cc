#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/configurations.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/command/number_flags.h"
#include "planner/export/check_configuration.h"
#include "planner/export/configuration.h"
#include "planner/export/import_plan.h"
#include "planner/export/model_checks.h"
#include "planner/export/plan_comparison.h"
#include "planner/export/settings_of.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::cli {
namespace {

struct CheckFlags {
  ConfigurationFlags from;
  std::string cluster;
  std::string model;
  std::int64_t gpus = 0;
  bool predict = false;
  bool json = false;
};

std::string findings_json(const Framework& framework, const std::vector<Finding>& findings,
                          const Diagnostics& notes) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.check/1");
  json.member("framework", framework.name);
  json.begin_array("findings");
  for (const Finding& each : findings) {
    json.begin_object();
    json.member("rule", each.rule);
    json.member("kind", name_of(each.kind));
    json.member("file", each.what.file);
    json.member("line", each.what.line);
    json.member("setting", each.what.path);
    json.member("says", each.what.message);
    json.member("fix", each.what.hint);
    json.member("source", each.source);
    json.end_object();
  }
  json.end_array();
  json.begin_array("notes");
  for (const Diagnostic& each : notes) {
    json.begin_object();
    json.member("file", each.file);
    json.member("line", each.line);
    json.member("setting", each.path);
    json.member("says", each.message);
    json.member("fix", each.hint);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

void print(const Framework& framework, const std::vector<Finding>& findings, bool predicted) {
  for (const Finding& each : findings) {
    fmt::print("{}\n    {} ({})\n", to_string(each.what), kind_words(each.kind, framework),
               each.source);
  }
  if (findings.empty()) {
    fmt::print("nothing found against {} rules of {} ({}){}\n", framework.rules.size(),
               framework.label, framework.code,
               predicted
                   ? fmt::format(", and no change of the plan brings {:.0f} %", kWorthSaying * 100)
                   : "");
  }
}

/// What one change of the configuration would bring.
Result<std::vector<Finding>> predictions(const CheckFlags& flags, const Framework& framework,
                                         const Configuration& configuration) {
  AskedImport asked;
  asked.job.model = flags.model;
  asked.job.cluster = flags.cluster;
  if (flags.gpus > 0) asked.job.gpus = std::to_string(flags.gpus);
  const Result<Import> made = import_plan(framework, configuration, asked);
  if (!made) return made.problems();
  const Result<Settings> settings = settings_of(framework, configuration);
  if (!settings) return settings.problems();
  std::vector<Finding> found = check_predictions(made->plan, framework, *settings);
  for (Finding& each : found) {
    if (each.what.file.empty()) each.what.file = configuration.file;
  }
  return found;
}

ExitCode run_check(const CheckFlags& flags) {
  if (flags.predict && flags.cluster.empty()) {
    return refuse({{"command line", 0, 0, "--predict", "needs a cluster to predict for",
                    "add --cluster, a name of shardwise list clusters"}});
  }
  const Result<Configuration> configuration = read_configurations(flags.from);
  if (!configuration) return refuse(configuration.problems());
  const Result<Framework> framework = framework_of(*configuration, flags.from.framework, "--from");
  if (!framework) return refuse_configuration(*configuration, framework.problems());
  const Result<std::string> version = version_paragraph(flags.from, *framework);
  if (!version) return refuse(version.problems());
  std::optional<ClusterSpec> cluster;
  if (!flags.cluster.empty()) {
    Result<ClusterSpec> read = find_cluster(flags.cluster);
    if (!read) return refuse(read.problems());
    cluster = *std::move(read);
  }
  Result<std::vector<Finding>> findings =
      check_configuration(*framework, *configuration, flags.gpus, cluster);
  if (!findings) return refuse_configuration(*configuration, findings.problems());
  if (flags.predict) {
    const Result<std::vector<Finding>> more = predictions(flags, *framework, *configuration);
    if (!more) return refuse_configuration(*configuration, more.problems());
    findings->insert(findings->end(), more->begin(), more->end());
  }
  if (flags.json) {
    fmt::print("{}", findings_json(*framework, *findings, configuration->notes));
  } else {
    print(*framework, *findings, flags.predict);
    fmt::print("{}{}", notes_text(*configuration), *version);
  }
  const bool refused = std::ranges::any_of(
      *findings, [](const Finding& each) { return each.kind == CheckRule::Kind::refused; });
  if (refused) return ExitCode::bad_input;
  return findings->empty() ? ExitCode::done : ExitCode::nothing_fits;
}

}  // namespace

void add_check(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "check", "Say what in a framework's configuration is refused, or taken and wrong");
  auto flags = std::make_shared<CheckFlags>();
  add_configuration_flags(*verb, flags->from);
  verb->add_option("--cluster", flags->cluster,
                   "Catalogue name, or a cluster file: for rules that ask for its GPU")
      ->type_name("NAME|FILE");
  add_integer(*verb, "--gpus", flags->gpus, 1, kMostGpus,
              "Ranks of the job [those that the launcher starts]");
  verb->add_option("--model", flags->model,
                   "Of --predict, where the configuration does not say the model")
      ->type_name("NAME|FILE");
  verb->add_flag(
      "--predict", flags->predict,
      "Add what one change would save on --cluster, where it is 2 % or more of a step or of a "
      "GPU's memory");
  verb->add_flag("--json", flags->json, "Print the findings as JSON");
  verb->footer(
      "Examples\n"
      "  shardwise check job/arguments.txt job/environment.sh --gpus 64\n"
      "  shardwise check job/arguments.txt --gpus 64 --cluster dgx-h100 --predict\n"
      "  shardwise check --cluster dgx-h100 -- torchrun --nproc-per-node 8 \\\n"
      "      pretrain_gpt.py --use-megatron-fsdp --use-distributed-optimizer \\\n"
      "      --ckpt-format fsdp_dtensor\n"
      "\n"
      "Exit codes\n"
      "  0 nothing found   1 something that the framework takes or changes\n"
      "  2 something that it refuses, or bad input   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_check(*flags); }; });
}

}  // namespace shardwise::cli
