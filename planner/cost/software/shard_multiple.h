#pragma once

#include <cstdint>

#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"

namespace shardwise {

/// Elements of which every rank's piece of a unit is a multiple: 128 B of compute weights where our
/// own engine (plans_buffers) is on GPUs, whose collectives take equal pieces only. 1 on CPUs,
/// whose last piece may be short, and under other engines, which pad by rules of their own: there
/// units that we run end with the last piece (MemoryRules::whole_pieces).
/// Source: NCCL 2.28, ncclAllGather and ncclReduceScatter: one count for all ranks.
std::int64_t shard_multiple(const EngineProfile& engine, const JobSpec& job, const GpuSpec& gpu);

}  // namespace shardwise
