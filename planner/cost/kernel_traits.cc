#include "planner/cost/kernel_traits.h"

#include "planner/cost/gpu_workspace.h"

namespace shardwise {

KernelTraits kernel_traits(const GpuSpec& gpu) {
  const bool cuda = cuda_capability(gpu) > 0;
  return {cuda, cuda};
}

}  // namespace shardwise
