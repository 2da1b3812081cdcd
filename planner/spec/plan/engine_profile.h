#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Where the weights that the optimizer updates live.
enum class MainWeights : std::uint8_t {
  separate,   // an fp32 copy beside the compute weights (Megatron, Megatron-FSDP, DeepSpeed)
  parameter,  // the fp32 sharded parameter itself; compute weights are casts (FSDP1/2 mixed
              // precision)
};

/// How the all-gathered weights of ZeRO-3 are held.
enum class GatherBuffer : std::uint8_t {
  in_place,       // gathered into the parameter buffer (Megatron's distributed optimizer)
  element_queue,  // prefetch until a number of elements is in flight (Megatron-FSDP, DeepSpeed)
  double_buffer,  // exactly two persistent unit buffers
  copy_out,       // gather output, then copied to the unsharded parameters (FSDP2)
  rate_limited,   // at most two units in flight, host waits (FSDP1)
};

/// How gradients reach their reduction.
enum class GradientBuffer : std::uint8_t {
  contiguous,  // wgrad accumulates into one persistent buffer (Megatron DDP)
  unit_queue,  // per-unit buckets queued for reduction (Megatron-FSDP)
  copy_in,     // each parameter's, then copied to a reduction's input (FSDP1/2, DeepSpeed)
};

enum class AllocatorKind : std::uint8_t { caching, arena };

/// Where bytes are added so that a state divides over the ranks that share it.
enum class ShardPadding : std::uint8_t {
  bucket,  // the end of each bucket, to lcm(ranks, pad_multiple) (Megatron)
  unit,    // the end of each unit, to ranks x the least common multiple of its rows (Megatron-FSDP)
  row,     // dimension 0 of each tensor (FSDP2)
  flat,    // the end of each unit's flat parameter (FSDP1)
  tensor,  // the end of each tensor under ZeRO-3, before it one end of them all (DeepSpeed)
};

/// Memory of a machine's software besides the job's tensors. Bytes. Measured or published values
/// with their sources are in configs/engines.
struct RuntimeMemory {
  std::int64_t context = 0;              // CUDA context and loaded kernels
  std::int64_t framework_workspace = 0;  // the framework's cuBLAS, one a handle: forward and
                                         // backward run on threads of their own, so there are two
  std::int64_t engine_workspace = 0;     // Transformer Engine's cuBLASLt
  std::int64_t communicator = 0;         // one NCCL communicator of more than one rank
  bool fp8_needs_transposes = false;     // 8-bit GEMMs read both operands along k (Hopper, Ada)
  // Reserved and not allocated: bytes + share x allocated + states_share x states, between two
  // shares of allocated, and at most most_bytes.
  std::int64_t slack_bytes = 0;
  double slack_share = 0;
  double slack_states_share = 0;
  double slack_least_share = 0;
  double slack_most_share = 0;
  std::int64_t slack_most_bytes = 0;  // 0 = no such bound
  double slack_whole_share =
      0;                   // of allocated alone, where ranks share no states; 0 = as elsewhere
  double doubt_share = 0;  // of reserved: what some runs need on top
  friend bool operator==(const RuntimeMemory&, const RuntimeMemory&) = default;
};

/// How a training system departs from the bare placement law: data that the ledger, the step-time
/// model and the lowering read. One file per engine in planner/engines. Facts with their sources
/// are there.
struct EngineProfile {
  std::string name;              // "megatron_ddp"
  std::string label;             // "Megatron-Core DDP (distributed optimizer)"
  std::string variant_of;        // the engine of which this is a variant, empty for others
  std::vector<int> zero_stages;  // stages it can run
  bool hybrid = false;           // dp_replicate > 1 with sharding (HSDP, optimizer instances)
  bool outer_shards_optimizer = false;    // HFSDP
  bool pipeline = true;                   // pp > 1 possible
  std::vector<int> pipeline_zero_stages;  // stages with pp > 1; empty: all of zero_stages
  std::vector<PipelineSchedule> schedules = {PipelineSchedule::one_f_one_b};  // with pp > 1
  bool tensor_parallel = true;
  bool context_parallel = true;
  bool expert_parallel = true;
  bool experts_split_apart = true;  // etp may be others than 1 and tp
  bool tied_head = true;            // takes models whose head uses the embedding's table
  bool fp16 = true;
  bool offload_optimizer = false;
  bool narrow_states = true;      // moments and main weights in fewer bits than fp32
  bool bf16_main_weights = true;  // among them main weights in bf16
  bool param_remainders = false;  // fp32 main weights as 16 bits beside bf16 weights, on request

  MainWeights main_weights = MainWeights::separate;
  GatherBuffer gather = GatherBuffer::in_place;
  GradientBuffer gradient_buffer = GradientBuffer::contiguous;
  ShardPadding padding = ShardPadding::bucket;
  Kernels kernels = Kernels::eager;        // unless the job says otherwise
  TpOverlap tp_overlap = TpOverlap::none;  // unless the job says otherwise
  LossKernel loss = LossKernel::fused;     // of PyTorch's operators, unless the job says otherwise
  RmsNormKernel rms_norm = RmsNormKernel::composite;  // of them, unless the job says otherwise
  bool fp32_gradients_default = true;
  bool norms_latent_queries = false;           // without q_lora_rank: a norm that no checkpoint has
  bool casts_gradients_for_optimizer = false;  // main-dtype copy from reduction to zero_grad
  bool keeps_root_gathered = false;            // non-unit parameters stay whole over the step
  bool reshards_to_groups = false;     // after forward, to fewer ranks than share them (FSDP2, hpZ)
  bool keeps_parts_over_step = false;  // what those ranks keep, which later forward passes gather
  bool reduce_every_microbatch = true;  // its default for ZeRO-2/3
  DType reduce_dtype = DType::fp32;     // gradient communication when not the buffer's
  bool fp32_accumulation =
      false;  // on request, a reduce-scatter is an all-to-all and a sum in fp32

  std::int64_t bucket_elements = 0;           // 0 = by unit
  std::int64_t first_bucket_elements = 0;     // a chunk's first bucket is full with so many; 0 = as
                                              // the others
  std::int64_t bucket_elements_per_rank = 0;  // bucket = max(bucket_elements, this x dp x cp)
  std::int64_t pad_multiple = 1;              // bucket end padded to lcm(dp, this)
  std::int64_t start_multiple = 1;            // of which a sharded bucket's tensors start at one
  std::int64_t vocabulary_multiple = 1;       // vocabulary padded to this x tp
  std::int64_t reduce_buffer_elements = 0;  // buffer that exists while backward runs, at any stage
  bool overlap_doubles_buffer = false;      // ZeRO-1/2: two of them where reductions overlap
  bool keeps_gradient_shards = false;   // ZeRO-3: gradients' shards and that buffer are there from
                                        // the start
  bool keeps_buckets = false;           // copy_in: buffers of all buckets are there from the start,
                                        // beside the gradients; one in the first step
  bool keeps_last_reduction = false;    // of a micro-batch: its input is there until the next one's
                                        // first (FSDP2, told that others follow)
  bool flattens_gradients = false;      // copied whole into a flat tensor before they are reduced
  bool joins_whole_gradients = false;   // ZeRO-1/2 in 16 bits: a rank keeps gradients of the whole
                                        // tensors that it has a part of; the step joins its parts
  bool offloads_gradients = false;      // with the optimizer (DeepSpeed's ZeRO-Offload)
  std::int64_t sub_group_elements = 0;  // ZeRO-3: of a rank, which the optimizer steps on at once,
                                        // their gradients cast meanwhile; 0 = all
  std::int64_t optimizer_scratch_bytes = 0;  // temporaries of a step, an element it updates
  bool overlaps_updated_gather = true;  // ZeRO-1/2: beside the next forward pass, where the layout
                                        // says so; if not, the optimizer step ends with it
  std::int64_t gather_queue_elements = 0;  // element_queue: prefetch until this many
  std::int64_t prefetch_elements = 0;  // in groups of whole tensors that have as many; 0 = units
  std::int64_t reduce_queue_elements = 0;  // unit_queue: reductions alive up to this many

  RuntimeMemory runtime;
  AllocatorKind allocator = AllocatorKind::caching;
  bool lazy_moments = true;                    // moments appear in the first optimizer step
  bool whole_moments_early = false;            // but under ZeRO-0 in 16 bits: at the start
  bool all_gather_shares_communicator = true;  // AG and RS serialise
  std::vector<std::string> sources;

  /// The name under which configs/engines and the executor have what is no policy: a variant has it
  /// as the engine that it varies.
  const std::string& known_as() const { return variant_of.empty() ? name : variant_of; }
  friend bool operator==(const EngineProfile&, const EngineProfile&) = default;
};

/// Whether the engine plans what data parallelism holds ahead, in one arena: our executor.
inline bool plans_buffers(const EngineProfile& engine) {
  return engine.allocator == AllocatorKind::arena && engine.gather == GatherBuffer::double_buffer &&
         engine.gradient_buffer == GradientBuffer::unit_queue;
}

}  // namespace shardwise
