// The library of GPUs that shardwise-run opens.
#include "executor/cuda/cuda_platform.h"
#include "executor/device/gpu_plugin.h"

extern "C" const shardwise::exec::GpuPlugin* shardwise_gpu_plugin();

const shardwise::exec::GpuPlugin* shardwise_gpu_plugin() {
  using namespace shardwise::exec;
  static const GpuPlugin kPlugin = {SHARDWISE_GPU_PLUGIN_ABI, SHARDWISE_VERSION,
                                    []() -> std::unique_ptr<GpuPlatform> {
                                      return std::make_unique<CudaPlatform>(cuda_parts());
                                    }};
  return &kPlugin;
}
