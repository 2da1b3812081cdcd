#pragma once

#include <memory>

#include "executor/device/gpu_platform.h"

namespace shardwise::exec {

/// Of everything that crosses the border between shardwise-run and its library of GPUs: a change of
/// a header that both include changes it.
inline constexpr int kGpuPluginAbi = 2;

/// What the library gives, before anything else of it is called.
struct GpuPlugin {
  int abi = kGpuPluginAbi;
  const char* version = nullptr;  // of Shardwise
  std::unique_ptr<GpuPlatform> (*open)() = nullptr;
};

/// The library's one entry, "shardwise_gpu_plugin". Extern "C".
using GpuPluginEntry = const GpuPlugin* (*)();
inline constexpr const char* kGpuPluginEntry = "shardwise_gpu_plugin";
inline constexpr const char* kGpuPluginFile = "libshardwise_cuda.so";

}  // namespace shardwise::exec
