// What the GPU of this machine moves and multiplies at best, as JSON on the standard output:
//     gpu_ceilings [--largest-bytes N] [--seconds-each S] [--largest-rows N] [--largest-sequence N]
// Or the tables that `shardwise fit --gpu` fits its curves to, and the rate of long runs:
//     gpu_ceilings --gemm-csv FILE --moves-csv FILE --attention-csv FILE
#include "tests/bench/ceilings_command.h"

int main(int argc, char** argv) {
  using namespace shardwise::exec;
  const GpuComputeOptions kernels;
  return run_ceilings(
      argc, argv, [&] { return GpuLibraries::open(kernels); }, kernels);
}
