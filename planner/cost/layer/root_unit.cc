#include "planner/cost/layer/root_unit.h"

namespace shardwise {

bool joins_root(const EngineProfile& engine, const Layout& layout, bool own_kernels) {
  return engine.gather == GatherBuffer::rate_limited && engine.keeps_root_gathered &&
         (layout.zero_stage >= 3 || !own_kernels);
}

}  // namespace shardwise
