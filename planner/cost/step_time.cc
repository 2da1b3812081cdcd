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

/// Of two messages that a stage sends and two that it receives in a forward and a backward chunk,
/// those that arrive do so at once where a backward pass takes twice a forward pass: a stage begins
/// its steady state one forward chunk before the stage that hands it activations.
constexpr double kBusyTimesAMessage = 1.5;

}  // namespace

double kernels_a_microbatch(const StageTime& stage, const Layout& layout) {
  const double messages = layout.pp > 1 ? 4.0 * layout.vpp : 0;
  return stage.forward.kernels + stage.backward.kernels + stage.recompute.kernels + messages;
}

bool waits_for_messages(const TimeRules& rules, const Layout& layout) {
  return rules.waits_for_messages && layout.pp > 1 && layout.vpp == 1 &&
         layout.schedule == PipelineSchedule::one_f_one_b;
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
    const Seconds compute = stage.beside_experts;
    const bool across = std::int64_t{layout.ep} * layout.etp > rules.cluster->gpus_per_node;
    const OverlapTax& tax = across ? rules.overlap_tax_inter : rules.overlap_tax_intra;
    const double products = compute > Seconds(0) ? stage.beside_gemm / compute : 0;
    hidden_experts = std::min(experts, compute) * (1 - tax.of(products, 1 - products));
  }
  parts.ep_exposed = m * (experts - hidden_experts);

  // The host may be slower than the kernels it issues: then every pass takes as long as issuing. In
  // a pipeline it runs ahead while the stage waits, unless it waits too.
  const Seconds busy = stage.stream() - hidden_experts;
  const Seconds issue = rules.issue * kernels_a_microbatch(stage, layout);
  const bool runs_ahead = layout.pp > 1 && !waits_for_messages(rules, layout);
  const Seconds behind = std::max(Seconds(0), issue - busy);
  const Seconds late = runs_ahead ? Seconds(0) : behind;
  parts.launch = m * late;
  const double stretch = behind > Seconds(0) ? issue / busy : 1;

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
    if (layout.schedule == PipelineSchedule::gpipe || layout.vpp > 1) {
      // Stages are in different chunks or directions at a time: the slowest of each sets the pace.
      parts.bubble += m * stages.uneven;
    }
    // A stage between two others waits for both, one at an end for one, unless it is slower by
    // that.
    const bool at_end = stages.slowest_stage == 0 || stages.slowest_stage + 1 == layout.pp;
    const double neighbours =
        at_end ? std::clamp(2 + (stages.slowest_inner - busy) / stages.hop, 1.0, 2.0) : 2;
    const PipelineMessages messages =
        pipeline_messages(layout, context.num_microbatches, neighbours);
    const Seconds chunk = busy / (2.0 * layout.vpp);
    const bool across =
        std::int64_t{layout.pp} * layout.tp * layout.cp > rules.cluster->gpus_per_node;
    const Seconds products = stage.forward.gemm + stage.backward.gemm + stage.recompute.gemm;
    const Seconds rest = stage.compute() - products;
    const double tax = (across ? rules.overlap_tax_inter : rules.overlap_tax_intra)
                           .of(products / stage.stream(), rest / stage.stream());
    const Seconds beside = std::max(stages.hop * (kBusyTimesAMessage * tax), stages.hop - chunk);
    parts.pp_exposed = messages.alone * stages.hop + messages.beside_chunk * beside;
    if (runs_ahead && behind > Seconds(0)) {
      // The last stage ends no earlier than its host has issued all, the first then drains.
      const Seconds drain = stage.backward_stream() * ((layout.pp - 1.0) / layout.vpp);
      const Seconds waited = m * busy + parts.bubble + parts.pp_exposed;
      parts.launch = std::max(Seconds(0), m * issue + drain - waited);
    }
    if (detail != nullptr) {
      detail->messages = (messages.alone + messages.beside_chunk) * stages.hop;
    }
  }

  // All ranks meet in every step, so the slowest GPU sets the pace; what it takes longer first uses
  // up the time in which it waits for its host.
  const Seconds computed = parts.forward + parts.backward + parts.recompute;
  const double with_bubble = 1 + parts.bubble / (m * busy);
  parts.straggler =
      std::max(Seconds(0), computed * with_bubble * rules.slowest_gpu_excess - parts.launch);

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
