#pragma once

#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

// The fitted curves of a GPU file as members of its JSON object: "gemm", "grouped_gemm",
// "attention_forward", "attention_backward", "attention_by_type", "memory_bound". docs/formats.md
// has the keys.

void read_curves(ObjectReader& gpu, GpuSpec& spec);
void write_curves(JsonWriter& json, const GpuSpec& spec);

}  // namespace shardwise
