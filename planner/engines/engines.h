#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

/// Megatron-Core's DistributedDataParallel, with the distributed optimizer from ZeRO-1.
EngineProfile megatron_ddp();
/// Megatron-FSDP: all four zero_dp_strategy, HSDP and HFSDP, its quirks included.
EngineProfile megatron_fsdp();
/// PyTorch's fully_shard as torchtitan uses it: fp32 sharded parameters, bf16 compute.
EngineProfile fsdp2();
/// Megatron-Core's --use-torch-fsdp2: bf16 sharded parameters and separate fp32 main weights.
EngineProfile fsdp2_in_megatron();
/// PyTorch's FullyShardedDataParallel: FULL_SHARD is ZeRO stage 3, SHARD_GRAD_OP the same without
/// reshard_after_forward, NO_SHARD stage 0, HYBRID_SHARD dp_replicate > 1.
EngineProfile fsdp1();
/// PyTorch's DistributedDataParallel, accelerate's MULTI_GPU: whole fp32 parameters, autocast.
EngineProfile pytorch_ddp();
/// DeepSpeed ZeRO 0 to 3 with its default configuration.
EngineProfile deepspeed();
/// Megatron-DeepSpeed of 2021 with DeepSpeed's first ZeRO-1.
EngineProfile megatron_deepspeed();
/// InternLM's InternEvo: HybridZeroOptimizer (ZeRO-1) or PyTorch FSDP1 under its own optimizer.
EngineProfile internevo();
/// Our executor: a planned arena.
EngineProfile shardwise_engine();

/// An engine that differs from `base` in policies alone, which the caller then states. Host waits,
/// modules and allocator (configs/engines) are those of the base until it has rows of its own.
EngineProfile variant(EngineProfile base, std::string name, std::string label);

/// Names of all profiles, in the order people read them.
std::vector<std::string> engine_names();
/// The profile of that name, or nullptr.
const EngineProfile* find_engine(std::string_view name);

/// Engines that a user can run today on such a cluster, for who names none: on GPUs all but
/// `shardwise`, whose executor was tried on one GPU only, `megatron_deepspeed`, software of 2021,
/// and `pytorch_ddp`, of which FSDP1's NO_SHARD is the same with fewer bytes; on CPUs `shardwise`
/// alone, which trains there.
std::vector<const EngineProfile*> engines_of_today(const ClusterSpec& cluster);

}  // namespace shardwise
