#pragma once

#include <string>

#include "planner/export/plan_fit.h"
#include "planner/spec/json/json_writer.h"

namespace shardwise::cli {

/// "Does not fit: 91.2 GiB of 79.2 GiB on the fullest GPU, 12.0 GiB too much; cheapest change: …",
/// as a paragraph.
std::string fit_text(const PlanFit& fit, bool colour);

/// Adds fit, memory_bytes, memory_needed_bytes, usable_bytes, step_time_s and cheapest_fix to an
/// object.
void write_fit(JsonWriter& json, const PlanFit& fit);

}  // namespace shardwise::cli
