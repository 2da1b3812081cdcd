#pragma once

#include <optional>
#include <string>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"

namespace shardwise {

/// The transformer that the settings of a command describe, as a text that load_model() reads
/// (docs/models.md): Megatron-LM is told every size, and has defaults for the rest. Nothing where a
/// size is missing that has no default, such as the vocabulary, which the tokenizer may say, or
/// where layers with experts follow a list.
/// Source: NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py:1320
std::optional<std::string> described_model(const Framework& framework, const Settings& settings);

}  // namespace shardwise
