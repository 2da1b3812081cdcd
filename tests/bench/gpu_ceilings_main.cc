// What the GPU of this machine moves and multiplies at best, as JSON on the standard output:
//     gpu_ceilings [--largest-bytes N] [--seconds-each S] [--largest-rows N]
// Or the tables that `shardwise fit --gpu` fits its curves to, and the rate of long runs:
//     gpu_ceilings --gemm-csv FILE --moves-csv FILE
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "planner/files/atomic_file_set.h"
#include "tests/bench/gpu_ceilings.h"
#include "tests/bench/gpu_curves.h"

namespace {

using namespace shardwise::exec;

void write_curves(CudaDevice& device, const std::string& gemms, const std::string& moves) {
  const GpuCurves curves = measure_curves(device, CublasLtLibrary::open(), {});
  shardwise::write_file(gemms, gemm_csv(curves));
  shardwise::write_file(moves, moves_csv(curves));
  std::printf("{\"sustained_tflops_bf16\": %.6g, \"products\": %zu, \"moves\": %zu}\n",
              curves.sustained_tflops, curves.gemms.size(), curves.moves.size());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rates at which the GPU of this machine moves memory and multiplies, as JSON");
  CeilingOptions options;
  int gpu = 0;
  app.add_option("--gpu", gpu, "Number of the GPU, as CUDA counts [0]");
  app.add_option("--largest-bytes", options.largest_bytes, "Largest block that is moved [1 GiB]");
  app.add_option("--seconds-each", options.seconds_each, "Time for each rate [0.2]");
  app.add_option("--largest-rows", options.largest_rows, "Rows of the largest product [32768]");
  std::string gemms;
  std::string moves;
  CLI::Option* const to_moves = app.add_option("--moves-csv", moves, "Table of copies");
  app.add_option("--gemm-csv", gemms, "Table of products")->needs(to_moves);
  to_moves->needs("--gemm-csv");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    CudaDevice device(gpu, 0);
    if (!gemms.empty()) {
      write_curves(device, gemms, moves);
      return 0;
    }
    std::fputs(to_json(measure_ceilings(device, CublasLtLibrary::open(), options)).c_str(), stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_ceilings: %s\n", error.what());
    return 3;
  }
  return 0;
}
