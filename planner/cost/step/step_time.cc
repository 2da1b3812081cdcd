#include "planner/cost/step/step_time.h"

#include <algorithm>

#include "planner/cost/step/data_parallel_traffic.h"
#include "planner/cost/step/host_copies.h"
#include "planner/cost/step/pass_streams.h"
#include "planner/cost/step/wire_time.h"

namespace shardwise {
namespace {

/// In a forward and a backward chunk of the steady state a stage sends two messages and receives
/// two. The two receives coincide where a backward pass takes twice a forward pass: a stage begins
/// its steady state one forward chunk before the stage that sends it activations. So messages run
/// beside compute for 3/4 of their time.
constexpr double kBusyTimesAMessage = 0.75;

/// Messages that run beside passes slow them.
Seconds slowed_by_messages(const StageTimes& stages, const LeafContext& context, Seconds beside) {
  const TimeRules& rules = *context.rules;
  const Layout& layout = *context.layout;
  const StageTime& stage = stages.slowest;
  const bool across =
      std::int64_t{layout.pp} * layout.tp * layout.cp > rules.cluster->gpus_per_node;
  const Seconds products = stage.forward.gemm + stage.backward.gemm + stage.recompute.gemm;
  const Seconds rest = stage.compute() - products;
  const double tax = (across ? rules.overlap_tax_inter : rules.overlap_tax_intra)
                         .of(products / stage.stream(), rest / stage.stream());
  const int neighbours = layout.pp > 2 ? 2 : 1;  // with each of whom as many are exchanged
  return beside * (kBusyTimesAMessage * neighbours * tax);
}

/// The axis that waits where a link is crowded: of those that run beside compute, the one that can
/// wait longest.
Seconds TimeParts::*crowded_part(const LeafContext& context) {
  const Layout& layout = *context.layout;
  if (context.groups->any) return &TimeParts::dp_exposed;
  if (layout.pp > 1) return &TimeParts::pp_exposed;
  return layout.ep > 1 ? &TimeParts::ep_exposed : &TimeParts::cp_exposed;
}

/// What compute loses at most to data parallelism beside it.
Seconds lost_beside(const DataParallelTraffic& data, const LeafContext& context,
                    const PipelineStep& step) {
  const PassKernels& kernels =
      context.layout->zero_stage < 3 ? step.kernels.first : step.kernels.slowest;
  const PassLosses losses = pass_losses(kernels, context);
  return Seconds(losses.forward.to(data.gather.value(), 0) +
                 losses.backward.to(data.reduce.value(), 0));
}

/// The detail of a step that was priced.
void fill(StepDetail& detail, const StageTimes& stages, const LeafContext& context,
          const PipelineStep& step, const StateTimes& states, const TimeParts& parts) {
  const DataParallelTraffic data = data_parallel_traffic(stages, context, states.moves);
  detail.gather = data.gather;
  detail.reduce = data.reduce;
  detail.copies = data.copies;
  detail.overlap_tax = std::min(parts.dp_exposed, lost_beside(data, context, step));
  detail.gathered_bytes = data.gathered_bytes;
  detail.reduced_bytes = data.reduced_bytes;
  detail.finalize = parts.optimizer - states.optimizer.update;
  detail.wire = wire_time(stages, context);
  // Exposed messages are summed over all stages, hidden ones are counted on one stage. Host copies
  // likewise.
  detail.messages = std::max(step.messages, parts.pp_exposed);
  detail.copied = states.optimizer.transfer;
  if (context.layout->offload_activations) {
    const StageTime& stage = stages.slowest;
    const auto m = static_cast<double>(context.num_microbatches);
    Bytes saved;
    for (std::int32_t i = 0; i < stage.kinds; ++i) {
      const UnitTime& unit = stage.units[static_cast<std::size_t>(i)];
      saved += Bytes(unit.saved * unit.count);
    }
    const double copies = host_copies(*stages.pipeline.slots);
    detail.offload_bytes = copies * m * static_cast<double>(saved.value());
    detail.copied += Seconds(detail.offload_bytes / context.rules->cluster->host_link.value());
    detail.copied = std::max(detail.copied, parts.offload_exposed);
    detail.offload_required =
        std::max(saved / stage.forward.stream(), saved / stage.backward_stream() * (copies - 1));
  }
}

}  // namespace

double kernels_a_microbatch(const StageTime& stage, const Layout& layout) {
  const double messages = layout.pp > 1 ? 4.0 * layout.vpp : 0;
  return stage.forward.kernels + stage.backward.kernels + stage.recompute.kernels + messages;
}

Seconds input_time(const TimeRules& rules, const Layout& layout, std::int64_t num_microbatches) {
  if (rules.cluster->storage_read.value() <= 0) return Seconds(0);
  // A node reads its sequences of the next step beside this one.
  const double sequences = static_cast<double>(num_microbatches) * layout.micro_batch_size *
                           static_cast<double>(rules.cluster->gpus_per_node) /
                           (static_cast<double>(layout.tp) * layout.cp * layout.pp);
  return Seconds(sequences * rules.input_bytes_per_sequence / rules.cluster->storage_read.value());
}

PipelineStep pipeline_step(const StageTimes& stages, const LeafContext& context) {
  const TimeRules& rules = *context.rules;
  const Layout& layout = *context.layout;
  const StageTime& stage = stages.slowest;
  const auto m = static_cast<double>(context.num_microbatches);

  PipelineStep step;
  TimeParts& parts = step.parts;
  parts.forward = m * stage.forward.compute();
  parts.backward = m * stage.backward.compute();
  parts.recompute = m * stage.recompute.compute();
  parts.tp_exposed = m * (stage.forward.tp + stage.backward.tp + stage.recompute.tp);
  parts.cp_exposed = m * (stage.forward.cp + stage.backward.cp + stage.recompute.cp);
  const Seconds experts = stage.forward.ep + stage.backward.ep + stage.recompute.ep;
  parts.ep_exposed = m * (experts - stage.hidden_experts);

  // All ranks meet in every step, so the slowest GPU sets the pace.
  const Seconds busy = stage.stream() - stage.hidden_experts;
  const Seconds paced = busy + stage.compute() * rules.slowest_gpu_excess;
  const PipelineTimes& pipeline = stages.pipeline;
  step.kernels = stage_kernels(stages);
  step.issued = issued_run(stages, context);
  parts.launch = std::max(Seconds(0), step.issued.run.length - pipeline.run.length);
  step.straggler = m * (paced - busy);
  if (layout.pp > 1) {
    const Seconds waited = std::max(Seconds(0), pipeline.run.length - pipeline.without_messages);
    step.messages = stages.hop * static_cast<double>(pipeline.slots->messages);
    // Waits for other stages are longer by as much as what the stage computes.
    const Seconds usual = pipeline.without_messages * (busy / paced);
    parts.bubble = std::max(Seconds(0), usual - m * busy);  // no rounding below nothing
    step.straggler = pipeline.without_messages - usual;
    parts.pp_exposed = waited;
    if (pipeline.slots->posts_ahead) {
      const Seconds beside = std::max(Seconds(0), step.messages - waited);
      parts.pp_exposed += slowed_by_messages(stages, context, beside);
    }
  }
  // What a GPU takes longer first uses up the time in which it waits for its host.
  const Seconds waits = std::min(step.straggler, parts.launch);
  parts.launch += waits;
  step.straggler -= waits;

  step.input = input_time(rules, layout, context.num_microbatches);
  return step;
}

StateTimes state_times(const StageTimes& stages, const LeafContext& context) {
  return {data_parallel_moves(stages, context), optimizer_time(stages, context)};
}

TimeParts step_time(const StageTimes& stages, const LeafContext& context, const PipelineStep& step,
                    const StateTimes& states, const StreamedPasses* streamed) {
  const Layout& layout = *context.layout;
  TimeParts parts = step.parts;
  const PipelineData with = pipeline_data(stages, context, step.kernels, step.issued, streamed);
  const Seconds held_up = std::max(Seconds(0), with.passes - step.issued.run.length);
  parts.dp_exposed = held_up + with.after;
  parts.straggler = step.straggler;
  parts.optimizer = states.optimizer.update + states.optimizer.finalize + with.copies;
  if (layout.offload_activations) {
    // The passes were found with all that runs beside them at once. Copies are charged what they
    // would hold up alone, and what is longer than all that data parallelism moves.
    const DataParallelTraffic data = data_parallel_traffic(stages, context, states.moves);
    const Seconds most = data.gather + data.reduce + data.copies + lost_beside(data, context, step);
    const Seconds both = parts.dp_exposed;
    parts.offload_exposed =
        std::min(both, std::max(exposed_copies(stages.slowest, context), both - most));
    parts.dp_exposed = both - parts.offload_exposed;
  }
  parts.offload_exposed += states.optimizer.transfer;
  if (context.rules->links_shared) {
    // Transfers of several axes that each seem hidden meet on a link.
    const Seconds more = wire_time(stages, context) - parts.total();
    if (more > Seconds(0)) parts.*crowded_part(context) += more;
  }
  if (step.input > Seconds(0)) {
    parts.input_exposed = std::max(Seconds(0), step.input - parts.total());
  }
  return parts;
}

Seconds least_step_time(const PipelineStep& step, const StateTimes& states) {
  return step.parts.total() + step.straggler + states.optimizer.update + states.optimizer.finalize;
}

Seconds offloaded(const StageTimes& stages, const LeafContext& context) {
  const auto m = static_cast<double>(context.num_microbatches);
  return Bytes(stages.slowest.saved) / context.rules->cluster->host_link * (2 * m);
}

TimeParts step_time(const StageTimes& stages, const LeafContext& context, StepDetail* detail) {
  const PipelineStep step = pipeline_step(stages, context);
  const StateTimes states = state_times(stages, context);
  const TimeParts parts = step_time(stages, context, step, states);
  if (detail != nullptr) fill(*detail, stages, context, step, states, parts);
  return parts;
}

}  // namespace shardwise
