#include "planner/cost/kernels/kernel_traits.h"

#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise {

KernelTraits kernel_traits(const GpuSpec& gpu) {
  const bool cuda = cuda_capability(gpu) > 0;
  KernelTraits traits;
  traits.epilogues = cuda;
  traits.adds_to_sums = cuda;
  traits.whole_pieces = cuda;
  traits.chooses_loss_rows = cuda;
  return traits;
}

KernelTraits kernel_traits(const GpuSpec& gpu, ActivationFunction activation) {
  KernelTraits traits = kernel_traits(gpu);
  traits.fuses_activation = traits.epilogues && (activation == ActivationFunction::gelu_tanh ||
                                                 activation == ActivationFunction::gelu_new);
  return traits;
}

}  // namespace shardwise
