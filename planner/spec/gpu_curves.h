#pragma once

#include "planner/spec/gpu_spec.h"
#include "planner/spec/json_writer.h"
#include "planner/spec/reader.h"

namespace shardwise {

// The fitted curves of a GPU file as members of its JSON object: "gemm", "grouped_gemm",
// "attention_forward", "attention_backward", "attention_by_type", "memory_bound". docs/formats.md
// has the keys.

void read_curves(ObjectReader& gpu, GpuSpec& spec);
void write_curves(JsonWriter& json, const GpuSpec& spec);

}  // namespace shardwise
