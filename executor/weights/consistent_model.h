#pragma once

#include <optional>

#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Whether a plan's model is the one that its family and its sizes give: kernels take the shapes of
/// tensors from the sizes, memory from the lists. The model is built anew from config_json() and
/// compared whole, but for its name, source and numerics.
/// \pre cannot_run() names nothing of the model
/// \returns the first difference by its key ("/model/kinds/0/parameters/0/shape/0"), or nothing
std::optional<Diagnostic> inconsistent(const ModelSpec& model);

}  // namespace shardwise::exec
