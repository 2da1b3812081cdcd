#include "executor/cuda/cuda_parts.h"

#include "executor/kernels/cuda/gpu_compute.h"
#include "executor/kernels/cuda/kernel_choices.h"

namespace shardwise::exec {

CudaParts cuda_parts() {
  GpuComputeOptions options;
  options.choices_folder = kernel_choices_folder();
  const auto libraries = std::make_shared<GpuLibraries>();
  return {[] { return NcclLibrary::open(); },
          [libraries, options] {
            *libraries = GpuLibraries::open(options);
            return libraries->describe();
          },
          [libraries, options](CudaDevice& device, int rank, const GpuOptions& asked) {
            GpuComputeOptions own = options;
            own.deterministic = asked.deterministic;
            return make_gpu_compute(device.facts(), rank, *libraries, own);
          },
          SHARDWISE_CUDA_ARCHITECTURES};
}

}  // namespace shardwise::exec
