#pragma once

#include <string>

#include "planner/spec/model_spec.h"

namespace shardwise::exec {

/// The config.json that transformers reads a model from: read_model of it gives the model again.
/// \pre cannot_run() names nothing of the model
std::string config_json(const ModelSpec& model);

}  // namespace shardwise::exec
