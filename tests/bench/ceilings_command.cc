#include "tests/bench/ceilings_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "planner/files/atomic_file_set.h"
#include "tests/bench/gpu_ceilings.h"
#include "tests/bench/gpu_curves.h"

namespace shardwise::exec {
namespace {

/// Where the tables go; empty: none were asked for.
struct Tables {
  std::string gemms;
  std::string moves;
  std::string attention;
};

void write_curves(const GpuCurves& curves, const Tables& to) {
  shardwise::write_file(to.gemms, gemm_csv(curves));
  shardwise::write_file(to.moves, moves_csv(curves));
  shardwise::write_file(to.attention, attention_csv(curves));
  std::printf(
      "{\"sustained_tflops_bf16\": %.6g, \"products\": %zu, \"moves\": %zu, \"attention\": %zu}\n",
      curves.sustained_tflops, curves.gemms.size(), curves.moves.size(), curves.attention.size());
}

void measure(const OpenLibraries& open, const GpuComputeOptions& kernels, int gpu,
             const CeilingOptions& options, const Tables& to) {
  CudaDevice device(gpu, 0);
  const GpuLibraries libraries = open();
  const std::unique_ptr<Compute> compute = make_gpu_compute(device.facts(), 0, libraries, kernels);
  if (!to.gemms.empty()) {
    write_curves(measure_curves(device, *libraries.cublaslt, *compute, {}), to);
    return;
  }
  std::fputs(to_json(measure_ceilings(device, *libraries.cublaslt, *compute, options)).c_str(),
             stdout);
}

}  // namespace

int run_ceilings(int argc, const char* const* argv, const OpenLibraries& open,
                 const GpuComputeOptions& kernels) {
  CLI::App app("Rates at which the GPU of this machine moves memory and multiplies, as JSON");
  CeilingOptions options;
  int gpu = 0;
  app.add_option("--gpu", gpu, "Number of the GPU, as CUDA counts [0]");
  app.add_option("--largest-bytes", options.largest_bytes, "Largest block that is moved [1 GiB]");
  app.add_option("--seconds-each", options.seconds_each, "Time for each rate [0.2]");
  app.add_option("--largest-rows", options.largest_rows, "Rows of the largest product [32768]");
  app.add_option("--largest-sequence", options.largest_sequence, "Of attention [8192]");
  Tables to;
  CLI::Option* const moves = app.add_option("--moves-csv", to.moves, "Table of copies");
  CLI::Option* const attention = app.add_option("--attention-csv", to.attention, "Of attention");
  app.add_option("--gemm-csv", to.gemms, "Table of products")->needs(moves)->needs(attention);
  moves->needs("--gemm-csv");
  attention->needs("--gemm-csv");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    measure(open, kernels, gpu, options, to);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_ceilings: %s\n", error.what());
    return 3;
  }
  return 0;
}

}  // namespace shardwise::exec
