#include "planner/cost/time_rules.h"

#include <algorithm>

namespace shardwise {
namespace {

constexpr double kFp32 = 4;

/// Streaming multiprocessors NCCL occupies while it moves bytes beside compute.
/// Source: Megatron-LM@d98e8a64, megatron/core/distributed/fsdp, documented SMs of all-gather and
/// reduce-scatter without registered buffers: 16 over NVLink and InfiniBand, 1-4 over InfiniBand
/// alone; on NVLink alone NCCL opens up to 24 channels on Hopper
/// (nccl@v2.28.9:src/graph/tuning.cc).
constexpr double kSmsIntra = 24;
constexpr double kSmsInter = 16;

/// Elements a second that the CPUs of a node update with Adam.
/// Source: Ren et al., "ZeRO-Offload" (arXiv:2101.06840), table 4: 10 billion in 2.57 s on two Xeon
/// 8168 of a DGX-2.
constexpr double kHostAdamElements = 10e9 / 2.57;

/// Host time to issue one kernel, autograd and module code included. Eager: a step of GPT 24 x 1024
/// with one sequence of 1,024 is bound by the host and takes 3.3 ms a layer and micro-batch on an
/// A100 node, for the 70 kernels that we count (VIA-Research/vTrain@f8dda847:data/
/// ground_truth_single.csv, 1.2719 s for 24 layers and 16 micro-batches). A compiled graph calls
/// fewer and thinner functions; our executor replays a recorded program.
double issue_us(Kernels kernels) {
  switch (kernels) {
    case Kernels::compiled:
      return 10;
    case Kernels::planned:
      return 2;
    case Kernels::by_engine:
    case Kernels::eager:
    case Kernels::transformer_engine:
      break;
  }
  return 47;
}

}  // namespace

double overlap_tax(const ClusterSpec& cluster, bool across_nodes) {
  const double all = std::max(1, cluster.gpu.sm_count);
  return std::min(0.5, (across_nodes ? kSmsInter : kSmsIntra) / all);
}

TimeRules time_rules(const JobSpec& job, const EngineProfile& engine, const ClusterSpec& cluster) {
  TimeRules r;
  r.engine = &engine;
  r.cluster = &cluster;
  const double wide = job.precision == DType::fp32 ? 4 : 2;
  r.weight_bytes = job.fp8_parameter_gather ? 1 : wide;
  const double reduce = bytes_of(engine.reduce_dtype);
  r.reduce_bytes = engine.gradient_buffer == GradientBuffer::copy_in ? reduce : 0;
  // Out of the gather's output into the parameters; gradients into the reduction's input.
  if (engine.gather == GatherBuffer::copy_out) r.gather_copy_bytes = 2 * r.weight_bytes;
  if (engine.gradient_buffer == GradientBuffer::copy_in) r.reduce_copy_bytes = wide + reduce;

  // Norm: the gradient is read. Clipping: read and written. Update: gradient, weight and moments
  // read, weight and moments written, and the compute copy where it is separate.
  const double moment = bytes_of(job.moment_dtype);
  const double moments = job.optimizer == Optimizer::adamw          ? 2
                         : job.optimizer == Optimizer::sgd_momentum ? 1
                                                                    : 0;
  r.optimizer_bytes = kFp32 + 2 * kFp32 + kFp32 + 2 * (kFp32 + moments * moment);
  if (engine.main_weights == MainWeights::separate) r.optimizer_bytes += wide;
  r.clears_buffer = engine.gradient_buffer != GradientBuffer::copy_in;
  r.optimizer_kernels = 0.1;  // multi-tensor kernels

  r.overlap_tax_intra = overlap_tax(cluster, false);
  r.overlap_tax_inter = overlap_tax(cluster, true);
  const Kernels kernels = job.kernels == Kernels::by_engine ? engine.kernels : job.kernels;
  r.expert_overlap = job.expert_overlap;
  if (!job.cuda_graphs)
    r.issue = std::max(cluster.gpu.launch_latency, Seconds(issue_us(kernels) * 1e-6));
  r.host_optimizer_elements_per_s =
      kHostAdamElements / static_cast<double>(std::max<std::int64_t>(1, cluster.gpus_per_node));
  r.input_bytes_per_sequence = job.bytes_per_token_input * static_cast<double>(job.sequence_length);
  return r;
}

}  // namespace shardwise
