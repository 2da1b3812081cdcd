#include "planner/cost/software/shard_multiple.h"

namespace shardwise {

std::int64_t shard_multiple(const EngineProfile& engine, const JobSpec& job, const GpuSpec& gpu) {
  constexpr std::int64_t kPieceBytes = 128;
  if (gpu.vendor == "cpu" || !plans_buffers(engine)) return 1;
  const bool whole = job.precision == DType::fp32 || job.precision == DType::tf32;
  return kPieceBytes / (whole ? 4 : 2);
}

}  // namespace shardwise
