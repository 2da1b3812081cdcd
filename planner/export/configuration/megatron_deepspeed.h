#pragma once

#include "planner/export/configuration/configuration.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reads a job of Megatron-DeepSpeed as what it is: Megatron's arguments for the layout, and of
/// DeepSpeed the ZeRO stage alone. Its switches become those of Megatron-LM that say the same, and
/// the rest of DeepSpeed's JSON and its own arguments are dropped. Other jobs stay as they are.
/// \returns problems: degrees that no plan has, or a ZeRO stage that nothing says
/// Source: deepspeedai/Megatron-DeepSpeed, megatron/arguments.py, megatron/training.py;
/// deepspeed/runtime/bf16_optimizer.py.
Diagnostics take_megatron_deepspeed(Configuration& job);

/// Whether a job was read so.
bool is_megatron_deepspeed(const Configuration& job);

}  // namespace shardwise
