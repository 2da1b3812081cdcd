#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/configurations.h"
#include "cli/flags/job_flags.h"
#include "cli/terminal.h"
#include "cli/texts/fit_text.h"
#include "cli/texts/report_text.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/export/check_configuration.h"
#include "planner/export/configuration/auto_of_model.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/megatron_deepspeed.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/import_plan.h"
#include "planner/export/model_checks.h"
#include "planner/export/plan_comparison.h"
#include "planner/export/unasked_rules.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

struct CheckFlags {
  ConfigurationFlags from;
  AskedImport asked;  // what --predict asks beside the configuration
  std::int64_t gpus = 0;
  bool predict = false;
  bool json = false;
};

/// What is predicted, and what for want of a setting or a flag it rests on.
struct Predicted {
  Predictions of;
  std::vector<Assumption> assumptions;
};

/// What rules found, which could not be asked, and what is predicted.
struct Checked {
  std::vector<Finding> findings;
  std::vector<UnaskedRule> unasked;
  std::optional<Predicted> predicted;
};

void write_predicted(JsonWriter& json, const Predicted& predicted) {
  const StepReport& report = predicted.of.fit.report;
  json.begin_object("predicted");
  json.member("model", report.model);
  json.member("cluster", report.cluster);
  json.member("gpus", report.layout.world());
  write_fit(json, predicted.of.fit);
  json.begin_array("assumptions");
  for (const Assumption& each : predicted.assumptions) {
    json.element(std::string_view(each.text));
  }
  json.end_array();
  json.end_object();
}

std::string findings_json(const Framework& framework, const Checked& checked,
                          const Diagnostics& notes) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.check/1");
  json.member("framework", framework.name);
  json.member("rules", std::ssize(framework.rules));
  json.begin_array("not_asked");
  for (const UnaskedRule& each : checked.unasked) {
    json.begin_object();
    json.member("rule", each.rule);
    json.begin_array("lacks");
    for (const std::string& lack : each.lacks) json.element(lack);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.begin_array("findings");
  for (const Finding& each : checked.findings) {
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
  if (checked.predicted) write_predicted(json, *checked.predicted);
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

/// "add --gpus and --cluster", "CUDA_DEVICE_MAX_CONNECTIONS is not known"
std::string wanted(const std::vector<std::string>& lacks) {
  std::vector<std::string> flags;
  std::vector<std::string> unknown;
  for (const std::string& each : lacks) {
    (each == kGpusFlag || each == kClusterFlag ? flags : unknown).push_back(each);
  }
  std::vector<std::string> says;
  if (!flags.empty()) says.push_back(fmt::format("add {}", fmt::join(flags, " and ")));
  if (!unknown.empty()) {
    says.push_back(fmt::format("{} {} not known", fmt::join(unknown, " and "),
                               unknown.size() > 1 ? "are" : "is"));
  }
  return fmt::format("{}", fmt::join(says, ", "));
}

/// The line of the rules that could not be asked, by what they lack; "" for none.
std::string unasked_text(const Framework& framework, const std::vector<UnaskedRule>& unasked) {
  if (unasked.empty()) return "";
  std::vector<std::pair<std::string, std::string>> groups;  // what is wanted, rules
  for (const UnaskedRule& each : unasked) {
    const std::string wants = wanted(each.lacks);
    const auto group =
        std::ranges::find(groups, wants, &std::pair<std::string, std::string>::first);
    if (group == groups.end()) {
      groups.emplace_back(wants, each.rule);
    } else {
      group->second += ", " + each.rule;
    }
  }
  std::vector<std::string> says;
  for (const auto& [wants, rules] : groups) says.push_back(fmt::format("{} ({})", rules, wants));
  const std::string text =
      fmt::format("note: {} of {} rules {} not asked: {}", unasked.size(), framework.rules.size(),
                  unasked.size() > 1 ? "are" : "is", fmt::join(says, "; "));
  return wrap(text, kTextWidth, 2) + "\n";
}

void print(const Framework& framework, const Checked& checked) {
  for (const Finding& each : checked.findings) {
    fmt::print("{}\n    {} ({})\n", to_string(each.what), kind_words(each.kind, framework),
               each.source);
  }
  if (checked.findings.empty()) {
    fmt::print("nothing found against {} rules of {} ({}){}\n",
               framework.rules.size() - checked.unasked.size(), framework.label, framework.code,
               checked.predicted
                   ? fmt::format(", and no change of the plan brings {:.0f} %", kWorthSaying * 100)
                   : "");
  }
  fmt::print("{}", unasked_text(framework, checked.unasked));
}

/// Whether it fits, where no finding says that it does not, and what that rests on.
std::string predicted_text(const Predicted& predicted) {
  const PlanFit& fit = predicted.of.fit;
  const StepReport& report = fit.report;
  std::string text = assumed_text(predicted.assumptions, wants_colour());
  if (report.verdict.fit == Fit::does_not_fit) return text;
  const std::string line = fmt::format("predicted for {} on {} GPUs of {}: {}", report.model,
                                       report.layout.world(), report.cluster, fit.line());
  return text + wrap(line, kTextWidth, 2) + "\n";
}

/// What one change of the configuration would bring.
Result<Predicted> predictions(const CheckFlags& flags, const Framework& framework,
                              const Configuration& configuration) {
  AskedImport asked = flags.asked;
  if (flags.gpus > 0) asked.job.gpus = std::to_string(flags.gpus);
  const Result<Import> made = import_plan(framework, configuration, asked);
  if (!made) return made.problems();
  Result<Settings> settings = settings_of(framework, configuration);
  if (!settings) return settings.problems();
  fill_auto_of_model(framework, made->plan.model, *settings);
  Predictions of = check_predictions(made->plan, framework, *settings);
  for (Finding& each : of.findings) {
    if (each.what.file.empty()) each.what.file = configuration.file;
  }
  return Predicted{std::move(of), made->assumptions};
}

/// Flags that --predict alone reads, without it.
Diagnostics idle_flags(const CheckFlags& flags) {
  Diagnostics problems;
  std::vector<std::string> given = given_flags(flags.asked.job);
  std::ranges::move(given_flags(flags.asked.layout), std::back_inserter(given));
  for (const std::string& flag : given) {
    if (flag == kClusterFlag || flag == "--model") continue;
    problems.push_back(
        {"command line", 0, 0, flag, "says nothing to the rules", "add --predict, which reads it"});
  }
  return problems;
}

ExitCode run_check(const CheckFlags& flags) {
  if (!flags.predict) {
    const Diagnostics idle = idle_flags(flags);
    if (!idle.empty()) return refuse(idle);
  }
  if (flags.predict && flags.asked.job.cluster.empty()) {
    return refuse({{"command line", 0, 0, "--predict", "needs a cluster to predict for",
                    "add --cluster, a name of shardwise list clusters"}});
  }
  const Result<Configuration> configuration = read_configurations(flags.from);
  if (!configuration) return refuse(configuration.problems());
  if (is_megatron_deepspeed(*configuration)) {
    return refuse({{configuration->file, 0, 0, "",
                    "is a job of Megatron-DeepSpeed, whose rules are not known",
                    "shardwise import reads it"}});
  }
  const Result<Framework> framework = framework_of(*configuration, flags.from.framework, "--from");
  if (!framework) return refuse_configuration(*configuration, framework.problems());
  const Result<std::string> version = version_paragraph(flags.from, *framework);
  if (!version) return refuse(version.problems());
  std::optional<ClusterSpec> cluster;
  if (!flags.asked.job.cluster.empty()) {
    Result<ClusterSpec> read = find_cluster(flags.asked.job.cluster);
    if (!read) return refuse(read.problems());
    cluster = *std::move(read);
  }
  Result<std::vector<Finding>> findings =
      check_configuration(*framework, *configuration, flags.gpus, cluster);
  if (!findings) return refuse_configuration(*configuration, findings.problems());
  Result<std::vector<UnaskedRule>> unasked =
      unasked_rules(*framework, *configuration, flags.gpus, cluster);
  if (!unasked) return refuse_configuration(*configuration, unasked.problems());
  std::optional<Result<Predicted>> more;
  if (flags.predict) more = predictions(flags, *framework, *configuration);
  const bool predicted = more && *more;
  if (predicted) std::ranges::copy((*more)->of.findings, std::back_inserter(*findings));
  // What the rules found is said even where the configuration makes no plan to predict from.
  if (more && !predicted && findings->empty()) {
    return refuse_configuration(*configuration, more->problems());
  }
  Checked checked{*std::move(findings), *std::move(unasked), std::nullopt};
  if (predicted) checked.predicted = **std::move(more);
  if (flags.json) {
    fmt::print("{}", findings_json(*framework, checked, configuration->notes));
  } else {
    print(*framework, checked);
    fmt::print("{}{}{}", checked.predicted ? predicted_text(*checked.predicted) : "",
               notes_text(*configuration), *version);
  }
  if (more && !predicted) return refuse_configuration(*configuration, more->problems());
  const bool refused = std::ranges::any_of(
      checked.findings, [](const Finding& each) { return each.kind == CheckRule::Kind::refused; });
  if (refused) return ExitCode::bad_input;
  return checked.findings.empty() ? ExitCode::done : ExitCode::nothing_fits;
}

}  // namespace

void add_check(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "check", "Say what in a framework's configuration is refused, or taken and wrong");
  auto flags = std::make_shared<CheckFlags>();
  add_configuration_flags(*verb, flags->from);
  verb->add_option("--cluster", flags->asked.job.cluster,
                   "Catalogue name, or a cluster file: for rules that ask for its GPU")
      ->type_name("NAME|FILE");
  add_integer(*verb, "--gpus", flags->gpus, 1, kMostGpus,
              "Ranks of the job [those that the launcher starts]");
  verb->add_option("--model", flags->asked.job.model,
                   "Of --predict, where the configuration does not say the model")
      ->type_name("NAME|FILE");
  add_job_fields(*verb, flags->asked.job, "the framework's");
  add_layout_flags(*verb, flags->asked.layout);
  verb->add_flag(
      "--predict", flags->predict,
      "Add whether it fits --cluster, and what one change would save there: 2 % or more of a step "
      "or of a GPU's memory");
  verb->add_flag("--json", flags->json, "Print the findings as JSON");
  show_first(*verb, {"--from", "--installed", "--cluster", "--gpus", "--model", "--predict",
                     "--json", "--sequence-length", "--recompute", "--loss"});
  verb->footer(
      "Flags of a job and of its layout state what the configuration leaves open,\n"
      "which --predict alone reads.\n"
      "\n"
      "Examples\n"
      "  shardwise check job/arguments.txt job/environment.sh --gpus 64\n"
      "  shardwise check job/arguments.txt --gpus 64 --cluster dgx-h100 --predict\n"
      "  shardwise check ds_config.json --gpus 64 --cluster dgx-h100 --predict \\\n"
      "      --model llama-3.1-8b --sequence-length 8192 --loss chunked\n"
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
