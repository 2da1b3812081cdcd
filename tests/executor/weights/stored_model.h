#pragma once

#include <string>
#include <vector>

#include "executor/transformer/layer.h"
#include "executor/weights/hf_weights.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec::test {

/// A plan of one rank for the model of a folder's config.json.
Plan plan_of(const std::string& folder);

/// Logits of a folder's weights for golden_tokens: [batch, sequence, vocabulary], by reading
/// each tensor through HfWeights. Expects that they are the model's.
std::vector<float> stored_logits(const std::string& folder, const LayerShape& shape);

}  // namespace shardwise::exec::test
