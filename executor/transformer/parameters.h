#pragma once

#include <cstdint>
#include <string_view>

#include "planner/spec/plan/model_spec.h"

namespace shardwise::exec {

/// Where an operation's tensors are in LayerSpec::parameters; -1 = it has none.
struct ParameterIndex {
  int weight = -1;
  int bias = -1;
};

/// The operation of that name, or nullptr.
const OperationSpec* find_operation(const LayerSpec& layer, std::string_view name);

/// The tensors of the operation of that name: parameters stand in the order of operations, a bias
/// after its weight. A head that shares the embedding's table finds it after its own tensors.
ParameterIndex parameters_of(const LayerSpec& layer, std::string_view operation);

}  // namespace shardwise::exec
