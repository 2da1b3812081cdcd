#pragma once

#include <cstdint>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Exact counts of a model's parameters under the conventions people publish.
struct ParameterCounts {
  std::int64_t total = 0;       // everything that is trained or stored once, MTP layers included
  std::int64_t vocabulary = 0;  // embedding table, and the head's matrix unless tied
  std::int64_t positions = 0;   // learned positions and token types
  std::int64_t mtp = 0;         // multi-token-prediction layers, without the shared tables
  std::int64_t active = 0;      // met by one token in the main model, embedding table included
  std::int64_t untrained = 0;   // of the total: moved by no gradient (balancing biases)

  /// Without the MTP layers: what model cards state ("671B").
  std::int64_t main_model() const { return total - mtp; }
};

ParameterCounts count_parameters(const ModelSpec& model);

}  // namespace shardwise
