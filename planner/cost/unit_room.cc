#include "planner/cost/unit_room.h"

#include "planner/cost/arena_buffers.h"

namespace shardwise {

std::int64_t shard_multiple(const EngineProfile& engine, const JobSpec& job, const GpuSpec& gpu) {
  constexpr std::int64_t kPieceBytes = 128;
  if (gpu.vendor == "cpu" || !plans_buffers(engine)) return 1;
  const bool whole = job.precision == DType::fp32 || job.precision == DType::tf32;
  return kPieceBytes / (whole ? 4 : 2);
}

ShardRanks finest_ranks(const Layout& layout) {
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  return shard_ranks(layout, placement.optimizer);
}

TrainedRoom trained_room(const LayerParameters& p, const Layout& layout, std::int64_t multiple) {
  if (multiple == 1) return {p.dense, p.routed};
  const ShardRanks ranks = finest_ranks(layout);
  return {unit_room(p.dense, ranks.dense, multiple), unit_room(p.routed, ranks.routed, multiple)};
}

}  // namespace shardwise
