#pragma once

#include <functional>

#include "executor/kernels/cuda/gpu_compute.h"

namespace shardwise::exec {

/// NVIDIA's libraries. \throws IoError where one is missing
using OpenLibraries = std::function<GpuLibraries()>;

/// The command line of gpu_ceilings. \returns its exit code
int run_ceilings(int argc, const char* const* argv, const OpenLibraries& open,
                 const GpuComputeOptions& kernels);

}  // namespace shardwise::exec
