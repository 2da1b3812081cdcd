#pragma once

#include "planner/export/configuration/configuration.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reads accelerate's YAML with distributed_type DEEPSPEED as what it is, a launcher of DeepSpeed:
/// num_processes are the ranks, deepspeed_config and mixed_precision fill in what DeepSpeed's JSON
/// leaves open, and the other keys change no plan. Other jobs stay as they are.
/// \returns problems: a JSON that is named and not given, or one beside another distributed_type
/// Source: accelerate 1.15.0, utils/dataclasses.py, DeepSpeedPlugin.
Diagnostics take_accelerate_for_launcher(Configuration& job);

}  // namespace shardwise
