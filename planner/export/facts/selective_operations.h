#pragma once

#include <string>
#include <vector>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// The operations of a model's blocks that torchtitan's selective checkpointing runs again. It
/// saves attention, the expert exchange and every other matrix product, from the first of a block
/// on. Queries, keys and values are one product, the router's is always run again and not counted,
/// and grouped products of experts are not among those that it saves.
/// \returns them in the order in which the model first has them
/// Source: torchtitan 0.3.0, torchtitan/distributed/activation_checkpoint.py:200 and :31
std::vector<std::string> selective_operations(const ModelSpec& model);

}  // namespace shardwise
