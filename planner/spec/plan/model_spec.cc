#include "planner/spec/plan/model_spec.h"

namespace shardwise {

std::int64_t ModelSpec::parameter_count() const {
  std::int64_t sum = 0;
  for (const int kind : layers) sum += kinds[static_cast<std::size_t>(kind)].parameter_count();
  return sum;
}

}  // namespace shardwise
