#pragma once

#include <string>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The GPU of the catalogue that people mean by a short name: "h100" is h100-sxm, "A100 40GB"
/// a100-40-sxm (gpu_named). Which one was taken is said in `said`. A name of the catalogue and a
/// file are taken as they are. \returns the GPU, or a problem of `--gpu` with the nearest names
Result<GpuSpec> gpu_called(const std::string& name, std::vector<Assumption>& said);

/// Precision in which people train on this GPU: bf16 where it has it, else fp16, else fp32.
DType usual_precision(const GpuSpec& gpu);

}  // namespace shardwise
