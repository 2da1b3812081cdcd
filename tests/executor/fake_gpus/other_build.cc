// A library of GPUs of another build.
#include "executor/device/gpu_plugin.h"

extern "C" const shardwise::exec::GpuPlugin* shardwise_gpu_plugin();

const shardwise::exec::GpuPlugin* shardwise_gpu_plugin() {
  static const shardwise::exec::GpuPlugin kPlugin = {999, "0.0.1", nullptr};
  return &kPlugin;
}
