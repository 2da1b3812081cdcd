// Has tests that were written for the fakes run on a GPU, as they are: what they ask the fakes for,
// of CUDA and cuBLASLt themselves. Nothing is counted or complained of here; a call that CUDA
// refuses throws, and what a kernel does wrong fails its test.
#include "tests/support/host_cuda/fake_cublaslt.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/on_gpu/skip_without_gpu.h"

namespace {

/// Before the tests run.
[[maybe_unused]] const bool kPrepared = [] {
  on_gpu::skip_without_gpu();
  return true;
}();

}  // namespace

// NOLINTBEGIN(performance-unnecessary-value-param): the fakes' prototypes
namespace fake_cuda {

void reset(std::uint64_t /*seed*/, const Machine& /*machine*/) {}
std::vector<std::string> complaints() { return {}; }
std::string left_over() { return ""; }
cudaError_t enqueue(cudaStream_t /*stream*/, const std::string& /*name*/,
                    std::function<void()> /*run*/) {
  return cudaErrorNotSupported;  // what a fake library issues
}

}  // namespace fake_cuda

namespace fake_cublaslt {

shardwise::exec::CublasLtLibrary reset() { return shardwise::exec::CublasLtLibrary::open(); }
std::vector<std::string> complaints() { return {}; }
void set_enqueue(Enqueue /*enqueue*/) {}

}  // namespace fake_cublaslt
// NOLINTEND(performance-unnecessary-value-param)
