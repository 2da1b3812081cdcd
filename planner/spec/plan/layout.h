#pragma once

#include <array>
#include <cstdint>

namespace shardwise {

/// The axes of the device mesh, in the order people name them.
enum class Axis : std::uint8_t { tp, cp, ep, dp_shard, dp_replicate, pp };

/// Which activations are dropped in forward and computed again in backward.
enum class Recompute : std::uint8_t {
  none,
  selective,  // the core attention of Korthikanti et al.; nothing when attention is fused (flash)
  full,       // keep the input of each layer only
};

/// Order of forward and backward passes over the pipeline.
enum class PipelineSchedule : std::uint8_t {
  one_f_one_b,  // 1F1B; interleaved when vpp > 1
  gpipe,
  looped_bfs,  // all micro-batches through one of vpp chunks, then through the next
  zb_h1,       // zero bubble, 1F1B memory
  zb_h2,       // zero bubble, twice the warm-up
  zb_v,
  dualpipe,    // micro-batches enter at both ends, so every stage has two copies of weights
  dualpipe_v,  // the same on half as many ranks, each with two stages: no copies
};

/// How attention is spread over context-parallel ranks.
enum class ContextParallelKind : std::uint8_t { ring, all_gather, ulysses };

/// How a job is spread over ranks: everything the search may choose. A plain value; it is legal for
/// a model and cluster when `check_layout` says so.
///
/// world = tp x cp x dp_shard x dp_replicate x pp. Experts live on the same ranks with their own
/// mesh: ep x etp x edp x pp = world, where etp is tp for the experts.
struct Layout {
  std::int32_t tp = 1;
  std::int32_t cp = 1;
  std::int32_t pp = 1;
  std::int32_t vpp = 1;                 // model chunks a pipeline stage holds
  std::int32_t first_stage_layers = 0;  // blocks on the first stage; 0 = spread evenly
  std::int32_t last_stage_layers = 0;   // blocks on the last stage; 0 = spread evenly
  std::int32_t ep = 1;
  std::int32_t etp = 1;
  std::int32_t dp_shard = 1;      // inner axis: states may be sharded over it
  std::int32_t dp_replicate = 1;  // outer axis: HSDP replicas, distributed-optimizer instances
  std::int32_t micro_batch_size = 1;
  std::int8_t zero_stage = 0;  // 0 … 3; FSDP is 3
  bool sequence_parallel = false;
  bool outer_shards_optimizer = false;  // HFSDP: O over dp_shard x dp_replicate
  /// ZeRO-3 engines: 1 frees gathered weights after forward, 0 keeps them until backward; n > 1
  /// leaves each rank a shard of n, so that backward gathers within groups of n neighbours.
  std::int32_t reshard_after_forward = 1;
  bool reduce_every_microbatch = true;  // ZeRO-2/3: reduce each micro-batch, or on the last
  bool offload_optimizer = false;       // main weights and moments in host memory
  /// fp32 main weights as the 16 bits that their bf16 weights lack, beside the moments. Results
  /// have the same bits. Source: Megatron-LM:megatron/core/optimizer/optimizer_config.py,
  /// store_param_remainders.
  bool store_param_remainders = false;
  bool offload_activations = false;
  bool double_buffer = false;  // Megatron-FSDP: two persistent unit buffers
  bool fp32_gradients = true;  // gradient buffer and its collective in fp32
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  /// Megatron's DDP: elements with which a bucket is full, 0 for the engine's own number, and
  /// whether buckets end at multiples of 2^16 elements besides. Source:
  /// Megatron-LM:megatron/core/distributed/distributed_data_parallel_config.py, bucket_size,
  /// pad_buckets_for_high_nccl_busbw.
  std::int64_t ddp_bucket_size = 0;
  bool ddp_pad_buckets_for_high_nccl_busbw = false;
  Recompute recompute = Recompute::none;
  std::int32_t recompute_interval = 1;  // full: of every n-th block
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  ContextParallelKind cp_kind = ContextParallelKind::ring;
  /// Rank order, fastest-varying axis first: decides which axis uses which link tier.
  std::array<Axis, 6> order = {Axis::tp,       Axis::cp,           Axis::ep,
                               Axis::dp_shard, Axis::dp_replicate, Axis::pp};

  bool reshards_to_groups() const { return zero_stage == 3 && reshard_after_forward > 1; }
  std::int64_t dp() const { return std::int64_t{dp_shard} * dp_replicate; }
  std::int64_t world() const { return std::int64_t{tp} * cp * pp * dp_shard * dp_replicate; }
  /// Data-parallel ranks of the routed experts.
  std::int64_t edp() const { return std::int64_t{tp} * cp * dp() / (std::int64_t{ep} * etp); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace shardwise
