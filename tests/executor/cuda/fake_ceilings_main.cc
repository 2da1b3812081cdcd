// gpu_ceilings on fakes of CUDA's runtime and cuBLASLt, with our kernels of attention on the host.
#include "tests/bench/ceilings_command.h"
#include "tests/support/host_cuda/fake_cublaslt.h"
#include "tests/support/host_cuda/fake_cuda.h"

int main(int argc, char** argv) {
  using namespace shardwise::exec;
  fake_cuda::reset(1);
  const auto open = [] {
    GpuLibraries libraries;
    libraries.cublaslt = std::make_shared<CublasLtLibrary>(fake_cublaslt::reset());
    fake_cublaslt::set_enqueue(
        [](cudaStream_t stream, const char* name, std::function<void()> run) {
          fake_cuda::enqueue(stream, name, std::move(run));
        });
    return libraries;
  };
  return run_ceilings(argc, argv, open, {.attention = GpuComputeOptions::Attention::own});
}
