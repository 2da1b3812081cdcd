#pragma once

#include <optional>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Gives settings that are "auto" and follow from the model the value that transformers fills in.
/// They stay "auto" in what is kept.
/// \returns what was filled in, if anything was
/// Source: transformers/integrations/deepspeed.py:202-242
std::optional<Assumption> fill_auto_of_model(const Framework& framework, const ModelSpec& model,
                                             Settings& settings);

}  // namespace shardwise
