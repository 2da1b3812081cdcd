#pragma once

#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// Writes the members that gpu_from_json reads, into an object that was begun. What was read is
/// written as it was, digit for digit.
void write_gpu(JsonWriter& json, const GpuSpec& gpu);

/// Members of a "sources" object from "figure: source", as the readers keep them.
void write_sources(JsonWriter& json, const std::vector<std::string>& sources);

}  // namespace shardwise
