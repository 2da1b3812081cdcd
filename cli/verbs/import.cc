#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/configurations.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/output_flags.h"
#include "cli/terminal.h"
#include "cli/texts/fit_text.h"
#include "cli/texts/report_text.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/export/import_plan.h"
#include "planner/export/plan_fit.h"
#include "planner/files/atomic_file_set.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kLongestPath = 500;

struct ImportFlags {
  ConfigurationFlags from;
  AskedImport asked;
  std::string output;
};

ExitCode import_configuration(const ImportFlags& flags) {
  const Result<Configuration> configuration = read_configurations(flags.from);
  if (!configuration) return refuse(configuration.problems());
  std::vector<NamedFile> inputs = files_of(flags.asked.job);
  for (const std::string& each : flags.from.words) inputs.push_back({"FILE", each});
  const Diagnostics outputs = prepare_outputs({{"--output", flags.output}}, inputs, false);
  if (!outputs.empty()) return refuse(outputs);
  const Result<Framework> framework = framework_of(*configuration, flags.from.framework, "--from");
  if (!framework) return refuse_configuration(*configuration, framework.problems());
  const Result<std::string> version = version_paragraph(flags.from, *framework);
  if (!version) return refuse(version.problems());
  const Result<Import> made = import_plan(*framework, *configuration, flags.asked);
  if (!made) return refuse_configuration(*configuration, made.problems());
  write_file(flags.output, to_json(made->plan));
  const std::vector<KeptSetting>& kept = made->plan.kept.settings;
  if (!kept.empty()) {
    std::vector<std::string> names;
    for (const KeptSetting& each : kept) names.push_back(shown(each.name));
    fmt::print("{}\n", wrap(fmt::format("kept for export --to {}: {}", framework->name,
                                        fmt::join(names, ", ")),
                            kTextWidth, 2));
  }
  fmt::print("{}", assumed_text(made->assumptions, wants_colour()));
  fmt::print("{}\n", wrap(fmt::format("wrote {}: {} on {} GPUs of {}, {}, from {} ({})",
                                      shown(flags.output, kLongestPath), made->plan.model.name,
                                      made->plan.layout.world(), made->plan.cluster.name,
                                      made->plan.engine.name, framework->label, framework->code),
                          kTextWidth, 2));
  fmt::print("{}", fit_text(plan_fit(made->plan, *framework), wants_colour()));
  fmt::print("{}{}", notes_text(*configuration), *version);
  return ExitCode::done;
}

}  // namespace

void add_import(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("import", "Read the configuration of a training framework as a plan");
  auto flags = std::make_shared<ImportFlags>();
  add_configuration_flags(*verb, flags->from);
  add_job_flags(*verb, flags->asked.job);
  add_layout_flags(*verb, flags->asked.layout);
  verb->get_option("--model")->required(false);
  verb->add_option("-o,--output", flags->output, "Write the plan to this file")
      ->required()
      ->type_name("FILE");
  show_first(*verb, {"--model", "--cluster", "--gpus", "--engine", "--from", "--sequence-length",
                     "--recompute", "--loss", "--output"});
  verb->footer(
      "Flags state what the configuration leaves open.\n"
      "\n"
      "Examples\n"
      "  shardwise import job/arguments.txt --cluster dgx-h100 --gpus 64 \\\n"
      "      -o imported.json\n"
      "  shardwise import --model llama-3.1-8b --cluster dgx-h100 -o imported.json -- \\\n"
      "      torchrun --nproc-per-node 8 pretrain_gpt.py --bf16 --seq-length 4096 \\\n"
      "      --tensor-model-parallel-size 2 --micro-batch-size 1\n"
      "\n"
      "Exit codes\n"
      "  0 done   2 bad input or use   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return import_configuration(*flags); }; });
}

}  // namespace shardwise::cli
