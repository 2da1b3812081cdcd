#pragma once

#include <string>

#include "executor/storage/stored_tensor.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise::exec {

/// The config.json that transformers reads a model from: read_model of it gives the model again.
/// \param type  of the stored weights, f32 or bf16
/// \pre cannot_run() names nothing of the model
std::string config_json(const ModelSpec& model, StoredType type = StoredType::f32);

}  // namespace shardwise::exec
