#include "planner/cost/software/time_rules.h"

#include <algorithm>

#include "planner/cost/kernels/traffic.h"
#include "planner/cost/software/shard_multiple.h"
#include "planner/cost/software/timing.h"
#include "planner/cost/software/usual_kernels.h"

namespace shardwise {
namespace {

/// Of compute, for each second that a collective takes alone.
OverlapTax processor_tax(const GpuSpec& gpu) {
  const double threads = gpu.sm_count + kCollectiveThreads;
  const double lost = 1 - shared_rate(gpu, gpu.sm_count, threads);
  const double tax = lost / shared_rate(gpu, kCollectiveThreads, threads);
  return {tax, tax};
}

}  // namespace

double shared_rate(const GpuSpec& gpu, double threads, double all) {
  return std::min(1.0, std::max(gpu.cores_per_rank, threads) / all);
}

OverlapTax overlap_tax(const GpuSpec& gpu, bool across_nodes, Kernels kernels) {
  if (gpu.cores_per_rank > 0) return processor_tax(gpu);
  const TimingFacts& facts = timing_facts();
  const double all = std::max(1, gpu.sm_count);
  const double sms = across_nodes ? facts.sms_across_nodes : facts.sms_within_node;
  OverlapTax tax;
  tax.other = std::min(kMostOverlapTax, sms / all);
  // Our executor asks for matrix products that leave the collective its multiprocessors.
  const bool persistent =
      kernels != Kernels::planned &&
      std::ranges::any_of(facts.persistent_architectures, [&](const std::string& name) {
        return gpu.architecture.starts_with(name);
      });
  tax.gemm = persistent ? 1 - 1 / facts.persistent_slowdown : tax.other;
  return tax;
}

TimeRules time_rules(const JobSpec& job, const EngineProfile& engine, const ClusterSpec& cluster) {
  TimeRules r;
  r.engine = &engine;
  r.cluster = &cluster;
  const double wide = job.precision == DType::fp32 ? 4 : 2;
  r.weight_bytes = job.fp8_parameter_gather ? 1 : wide;
  const double reduce = job.precision == DType::fp32 ? wide : bytes_of(engine.reduce_dtype);
  r.reduce_bytes = engine.gradient_buffer == GradientBuffer::copy_in ? reduce : 0;
  // Out of the gather's output into the parameters; gradients into the reduction's input.
  if (engine.gather == GatherBuffer::copy_out) r.gather_copy_bytes = 2 * r.weight_bytes;
  if (engine.gradient_buffer == GradientBuffer::copy_in) r.reduce_copy_bytes = wide + reduce;
  r.per_token_loss = job.calculate_per_token_loss;
  r.fp32_accumulation = job.reduce_scatter_with_fp32_accumulation;
  r.shard_multiple = shard_multiple(engine, job, cluster.gpu);

  const Kernels kernels = kernels_of(job, engine);
  const bool planned = kernels == Kernels::planned;
  r.own_kernels = planned;
  r.precision = job.precision;
  const bool torchs = steps_with_torch_adamw(job, engine);
  // An engine whose optimizer makes tensors of its own goes over them operator by operator.
  const AdamwKernel usual =
      engine.optimizer_scratch_bytes > 0 ? AdamwKernel::foreach : AdamwKernel::fused;
  r.optimizer_bytes = optimizer_traffic(job, kernels, torchs ? job.adamw : usual);
  r.shared_norm_bytes = shared_norm_traffic(kernels);
  // The compute copy is written where it is separate: in our executor weights of the main dtype are
  // their own main weights.
  const bool own = bytes_of(job.main_dtype) == static_cast<int>(wide);
  if (engine.main_weights == MainWeights::separate && !(planned && own)) {
    r.optimizer_bytes += wide;
  }
  // Ours clears what a layer is about to add to, which is counted with the layer.
  r.clears_buffer = engine.gradient_buffer != GradientBuffer::copy_in &&
                    !(planned && engine.gradient_buffer == GradientBuffer::unit_queue);
  r.weight_cast_bytes = cast_traffic(job.precision, job, kernels).weight_step;
  // PyTorch's multi-tensor kernels take 36 tensors of four lists, or 320 chunks of 65,536 elements:
  // ten tensors of 2 million elements. Nobody measured how many a real model's shards come to.
  // Source: pytorch/pytorch:aten/src/ATen/native/cuda/MultiTensorApply.cuh, depth_to_max_tensors.
  // bitsandbytes' optimizers and torchao's update tensor by tensor.
  const bool one_by_one = is_bitsandbytes(job.adamw) || job.moment_dtype == DType::int8;
  r.optimizer_kernels = torchs && one_by_one ? 1 : 0.1;

  r.overlap_tax_intra = overlap_tax(cluster.gpu, false, kernels);
  r.overlap_tax_inter = overlap_tax(cluster.gpu, true, kernels);
  // Ranks that share a processor were measured together.
  const bool shared = cluster.gpu.cores_per_rank > 0;
  r.slowest_gpu_excess = shared ? 0 : slowest_gpu_excess(cluster.gpus);
  r.expert_overlap = job.expert_overlap;
  const auto has = [&](const std::vector<std::string>& engines) {
    return std::ranges::find(engines, engine.known_as()) != engines.end();
  };
  r.waits_for_messages = has(timing_facts().waits_for_messages);
  r.waits_for_norm = has(timing_facts().waits_for_norm);
  if (shared) {
    r.issue = cluster.gpu.launch_latency;
  } else if (!job.cuda_graphs) {
    r.issue = issue_time(issue_facts(engine, kernels), cluster.gpu);
  }
  r.host_optimizer_elements_per_s =
      timing_facts().host_adam_elements_per_s /
      static_cast<double>(std::max<std::int64_t>(1, cluster.gpus_per_node));
  r.input_bytes_per_sequence = job.bytes_per_token_input * static_cast<double>(job.sequence_length);
  return r;
}

}  // namespace shardwise
