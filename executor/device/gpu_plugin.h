#pragma once

#include <memory>

#include "executor/device/gpu_platform.h"

namespace shardwise::exec {

/// Functions that the library gives, before anything else of it is called.
struct GpuPlugin {
  /// SHARDWISE_GPU_PLUGIN_ABI of its build: a digest of the headers that the library and
  /// shardwise-run share (executor/CMakeLists.txt), so that each of their changes changes it.
  int abi = 0;
  const char* version = nullptr;  // of Shardwise
  std::unique_ptr<GpuPlatform> (*open)() = nullptr;
};

/// The library's one entry, "shardwise_gpu_plugin". Extern "C".
using GpuPluginEntry = const GpuPlugin* (*)();
inline constexpr const char* kGpuPluginEntry = "shardwise_gpu_plugin";
inline constexpr const char* kGpuPluginFile = "libshardwise_cuda.so";

}  // namespace shardwise::exec
