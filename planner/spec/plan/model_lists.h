#pragma once

#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Checks what the formulas of memory, time and communication need: vocabulary, heads, residual
/// stream and number of blocks are those of the model's sizes wherever its lists have them, and
/// every matrix product of a layer has its matrix among the layer's parameters. \returns the first
/// contradiction by its key ("/model/kinds/0/operations/0/k"), or nothing \pre indices into `kinds`
/// and dimensions are in range
Diagnostics check_model_lists(const ModelSpec& model);

}  // namespace shardwise
