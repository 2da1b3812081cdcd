#include "executor/cuda/cuda_parts.h"

#include "executor/kernels/cuda/gpu_compute.h"

namespace shardwise::exec {

CudaParts cuda_parts() {
  constexpr GpuComputeOptions kOptions;
  const auto libraries = std::make_shared<GpuLibraries>();
  return {[] { return NcclLibrary::open(); },
          [libraries, kOptions] {
            *libraries = GpuLibraries::open(kOptions);
            return libraries->describe();
          },
          [libraries, kOptions](CudaDevice& device, int rank) {
            return make_gpu_compute(device.facts(), rank, *libraries, kOptions);
          }};
}

}  // namespace shardwise::exec
