#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags/output_flags.h"
#include "cli/verbs.h"
#include "cli/verbs/fit_collectives.h"
#include "cli/verbs/fit_gpu.h"
#include "planner/command/command_line.h"

namespace shardwise::cli {
namespace {

struct FitFlags {
  GpuFitFlags gpu;
  CollectiveFitFlags collectives;
  std::vector<std::string> sources;
  std::string output;
};

/// No table is overwritten, nor the cluster of the measurements. The GPU's own file may be: its
/// curves are what is fitted.
Diagnostics check_fit_files(const FitFlags& flags) {
  std::vector<NamedFile> inputs = {{"--gemm", flags.gpu.gemm},
                                   {"--memory-bound", flags.gpu.memory_bound},
                                   {"--operators", flags.gpu.operators},
                                   named_file("--cluster", "clusters", flags.collectives.cluster)};
  for (const std::string& file : flags.gpu.attention) inputs.push_back({"--attention", file});
  for (const std::string& file : flags.collectives.files) {
    inputs.push_back({"--collectives", file});
  }
  return prepare_outputs({{"--output", flags.output}}, inputs, false);
}

ExitCode fit(FitFlags flags) {
  const bool gpu = !flags.gpu.gpu.empty() || flags.gpu.residuals;
  if (gpu == !flags.collectives.files.empty()) {
    fmt::print(stderr, "shardwise fit: give either --gpu or --collectives\n");
    return ExitCode::bad_input;
  }
  if (const Diagnostics outputs = check_fit_files(flags); !outputs.empty()) {
    fmt::print(stderr, "{}", to_string(outputs));
    return ExitCode::bad_input;
  }
  if (gpu) {
    flags.gpu.sources = std::move(flags.sources);
    flags.gpu.output = std::move(flags.output);
    flags.gpu.check = flags.collectives.check;
    return fit_gpu_files(flags.gpu);
  }
  if (!flags.sources.empty()) flags.collectives.source = flags.sources.front();
  flags.collectives.output = std::move(flags.output);
  return fit_collective_files(flags.collectives);
}

}  // namespace

void add_fit(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("fit", "Fit the curves of a GPU or a link to files of measurements");
  auto flags = std::make_shared<FitFlags>();
  add_gpu_flags(*verb, flags->gpu);
  add_collective_flags(*verb, flags->collectives);
  verb->add_option("--source", flags->sources,
                   "Who measured. With --gpu KIND=SOURCE: gemm, attention, memory_bound, "
                   "operators or sustained")
      ->type_name("SOURCE");
  verb->add_option("-o,--output", flags->output, "File to write")->type_name("FILE");
  show_first(*verb, {"--gpu", "--gemm", "--attention", "--sustained", "--residuals",
                     "--collectives", "--cluster", "--tier", "--check", "--source", "--output"});
  verb->footer(
      "Examples\n"
      "  shardwise fit --residuals\n"
      "  shardwise fit --gpu h100-sxm --gemm gemm_h100_sxm.csv \\\n"
      "      --sustained bf16=794.5 \\\n"
      "      --source \"gemm=owner/repository@commit:path\" -o configs/gpus/h100-sxm.json\n"
      "  shardwise fit --collectives collectives.csv --cluster dgx-h100 \\\n"
      "      --tier nvlink --only gpu=h100_sxm --only dtype=half --name nvlink4-h100 \\\n"
      "      --source \"owner/repository@commit:path\" \\\n"
      "      -o configs/collectives/nvlink4-h100.json");
  verb->callback([&run, flags] { run = [flags] { return fit(*flags); }; });
}

}  // namespace shardwise::cli
