#pragma once

#include <string>
#include <string_view>

#include "planner/spec/machine/gpu_spec.h"

namespace shardwise::sim {

/// Whether a device, as its driver names it ("NVIDIA A100-SXM4-80GB"), is another GPU than `gpu`:
/// another model, form factor (PCIe, NVL) or memory, as far as both names tell. The memory of a
/// Grace module is its host's, and is not compared.
bool is_other_gpu(std::string_view device, const GpuSpec& gpu);

}  // namespace shardwise::sim
