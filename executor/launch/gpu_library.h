#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/device/gpu_plugin.h"

namespace shardwise::exec {

/// The library of GPUs, or why this program has none.
struct GpuLibrary {
  std::unique_ptr<GpuPlatform> platform;
  std::string why_none;  // where there is no platform
  bool refused = false;  // as what is there is not trusted, which why_none says
};

/// Opens libshardwise_cuda.so in the first of the folders that has one to trust (TrustedFile). It
/// stays open until the process ends, as threads of NVIDIA's libraries may.
/// \returns why there is none; where none is to be trusted, with owner and mode of the first
/// \throws IoError when the file does not load, or is of another build: names both
GpuLibrary open_gpu_library(const std::vector<std::string>& folders);
/// Beside this program, and in ../lib. Or what the program gave to use_gpu_library().
GpuLibrary open_gpu_library();

/// Serves a program that is linked with the library, as tests are.
void use_gpu_library(GpuPluginEntry entry);

}  // namespace shardwise::exec
