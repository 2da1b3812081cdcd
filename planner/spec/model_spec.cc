#include "planner/spec/model_spec.h"

namespace shardwise {

std::int64_t ModelSpec::parameter_count() const {
  std::int64_t sum = 0;
  for (const int kind : layers) sum += kinds[static_cast<std::size_t>(kind)].parameter_count();
  return sum;
}

std::int64_t ModelSpec::active_parameter_count() const {
  std::int64_t sum = 0;
  for (const int kind : layers) {
    for (const ParameterSpec& p : kinds[static_cast<std::size_t>(kind)].parameters) {
      sum += p.routed_expert ? p.elements() / num_experts * num_experts_per_tok : p.elements();
    }
  }
  return sum;
}

}  // namespace shardwise
