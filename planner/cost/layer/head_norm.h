#pragma once

#include <string>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// A norm of queries or keys of one head, which the heads of all tp ranks share.
inline bool is_head_norm(const ParameterSpec& p) {
  return p.tp_dim < 0 &&
         (p.name.find("q_norm") != std::string::npos || p.name.find("k_norm") != std::string::npos);
}

}  // namespace shardwise
