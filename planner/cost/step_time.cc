#include "planner/cost/step_time.h"

#include <algorithm>

#include "planner/cost/data_parallel.h"
#include "planner/cost/optimizer_time.h"
#include "planner/cost/pipeline.h"

namespace shardwise {
namespace {

/// Host traffic of activations: down during forward, up during backward.
void offload_activations(const StageTimes& stages, const LeafContext& context, TimeParts& parts,
                         StepDetail* detail) {
  if (!context.layout->offload_activations) return;
  const StageTime& stage = stages.slowest;
  const BytesPerSecond link = context.rules->cluster->host_link;
  const Bytes saved(stage.saved);
  const Seconds one_way = saved / link;
  const auto m = static_cast<double>(context.num_microbatches);
  parts.offload_exposed += m * (std::max(Seconds(0), one_way - stage.forward.stream()) +
                                std::max(Seconds(0), one_way - stage.backward_stream()));
  if (detail != nullptr) {
    detail->offload += one_way * (2 * m);
    detail->offload_bytes += 2 * m * static_cast<double>(stage.saved);
    detail->offload_required = saved / std::min(stage.forward.stream(), stage.backward_stream());
  }
}

}  // namespace

double kernels_a_microbatch(const StageTime& stage, const Layout& layout) {
  const double messages = layout.pp > 1 ? 4.0 * layout.vpp : 0;
  return stage.forward.kernels + stage.backward.kernels + stage.recompute.kernels + messages;
}

TimeParts step_time(const StageTimes& stages, const LeafContext& context, StepDetail* detail) {
  const TimeRules& rules = *context.rules;
  const Layout& layout = *context.layout;
  const StageTime& stage = stages.slowest;
  const auto m = static_cast<double>(context.num_microbatches);

  TimeParts parts;
  parts.forward = m * stage.forward.compute();
  parts.backward = m * stage.backward.compute();
  parts.recompute = m * stage.recompute.compute();
  parts.tp_exposed = m * (stage.forward.tp + stage.backward.tp + stage.recompute.tp);
  parts.cp_exposed = m * (stage.forward.cp + stage.backward.cp + stage.recompute.cp);
  const Seconds experts = stage.forward.ep + stage.backward.ep + stage.recompute.ep;
  Seconds hidden_experts;
  if (rules.expert_overlap || is_dualpipe(layout.schedule)) {
    // One micro-batch's exchange runs beside another's compute.
    const Seconds compute = stage.forward.compute() + stage.backward.compute();
    const bool across = std::int64_t{layout.ep} * layout.etp > rules.cluster->gpus_per_node;
    const OverlapTax& tax = across ? rules.overlap_tax_inter : rules.overlap_tax_intra;
    const double products = (stage.forward.gemm + stage.backward.gemm) / compute;
    hidden_experts = std::min(experts, compute) * (1 - tax.of(products));
  }
  parts.ep_exposed = m * (experts - hidden_experts);

  // The host may be slower than the kernels it issues: then every pass takes as long as issuing.
  const Seconds busy = stage.stream() - hidden_experts;
  const Seconds issue = rules.issue * kernels_a_microbatch(stage, layout);
  const Seconds late = std::max(Seconds(0), issue - busy);
  parts.launch = m * late;
  const double stretch = late > Seconds(0) ? issue / busy : 1;
  // All ranks meet in every step, so the slowest GPU sets the pace; what it takes longer first uses
  // up the time in which it waits for its host.
  const Seconds computed = parts.forward + parts.backward + parts.recompute;
  parts.straggler = std::max(Seconds(0), computed * rules.slowest_gpu_excess - parts.launch);

  const DataParallelTime data = data_parallel_time(stages, context, stretch);
  parts.dp_exposed = m * data.per_microbatch + data.once;

  if (layout.pp > 1) {
    // What one micro-batch loses on the way slows every stage alike.
    const Seconds lost = data.per_microbatch + late;
    PipelinePace pace;
    pace.forward = stage.forward.stream();
    pace.backward = stage.backward_stream() - hidden_experts + lost;
    pace.weight_gradient = stage.weight_gradient;
    pace.all = stages.all_forward + stages.all_backward + (lost - hidden_experts) * layout.pp;
    parts.bubble =
        pipeline_bubble(layout.schedule, layout.pp, layout.vpp, context.num_microbatches, pace);
    const PipelineMessages messages =
        pipeline_messages(layout.pp, layout.vpp, context.num_microbatches);
    const Seconds chunk = busy / (2.0 * layout.vpp);
    const bool across =
        std::int64_t{layout.pp} * layout.tp * layout.cp > rules.cluster->gpus_per_node;
    const double tax =
        (across ? rules.overlap_tax_inter : rules.overlap_tax_intra)
            .of((stage.forward.gemm + stage.backward.gemm + stage.recompute.gemm) / stage.stream());
    const Seconds beside = std::max(stages.hop * tax, stages.hop - chunk);
    parts.pp_exposed = messages.alone * stages.hop + messages.beside_chunk * beside;
    if (detail != nullptr) {
      detail->messages = (messages.alone + messages.beside_chunk) * stages.hop;
    }
  }

  const OptimizerTime optimizer = optimizer_time(stages, context);
  parts.optimizer = optimizer.update + optimizer.finalize;
  parts.offload_exposed = optimizer.transfer;
  offload_activations(stages, context, parts, detail);

  if (rules.cluster->storage_read.value() > 0) {
    // A node reads its sequences of the next step beside this one.
    const double sequences = m * layout.micro_batch_size *
                             static_cast<double>(rules.cluster->gpus_per_node) /
                             (static_cast<double>(layout.tp) * layout.cp * layout.pp);
    const Seconds read(sequences * rules.input_bytes_per_sequence /
                       rules.cluster->storage_read.value());
    parts.input_exposed = std::max(Seconds(0), read - parts.total());
  }

  if (detail != nullptr) {
    detail->gather = data.gather;
    detail->reduce = data.reduce;
    detail->copies = data.copies;
    detail->overlap_tax = data.tax;
    detail->gathered_bytes = data.gathered_bytes;
    detail->reduced_bytes = data.reduced_bytes;
    detail->outer_gathered_bytes = data.outer_gathered_bytes;
    detail->outer_reduced_bytes = data.outer_reduced_bytes;
    detail->finalize = optimizer.finalize;
  }
  return parts;
}

}  // namespace shardwise
