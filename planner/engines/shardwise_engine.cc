#include "planner/engines/engines.h"
#include "planner/spec/plan/names.h"

namespace shardwise {

EngineProfile shardwise_engine() {
  EngineProfile e;
  e.name = "shardwise";
  e.label = "Shardwise executor";
  e.zero_stages = {0, 1, 2, 3};
  e.hybrid = true;
  e.outer_shards_optimizer = true;
  e.schedules = values_of<PipelineSchedule>();
  e.param_remainders = true;
  e.main_weights = MainWeights::separate;
  e.gather = GatherBuffer::double_buffer;
  e.gradient_buffer = GradientBuffer::unit_queue;
  e.padding = ShardPadding::flat;
  e.fp32_accumulation = true;
  e.kernels = Kernels::planned;
  e.reduce_dtype = DType::fp32;
  e.reduce_queue_elements = 1;  // one unit is reduced while the next is computed
  e.allocator = AllocatorKind::arena;
  e.lazy_moments = false;  // everything is placed before the first step
  e.all_gather_shares_communicator = false;
  e.sources = {"this project: executor/"};
  return e;
}

}  // namespace shardwise
