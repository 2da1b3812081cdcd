#include "planner/estimate/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "planner/cost/layer/expert_load.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/software/timing.h"
#include "planner/cost/step/data_parallel_moves.h"
#include "planner/cost/step/optimizer_time.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/placement.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

std::string bytes_text(double bytes) {
  return format_bytes(Bytes(static_cast<std::int64_t>(bytes)));
}

class Explainer {
 public:
  Explainer(StepReport& report, const PricedStep& step)
      : report_(report), p_(step), s_(step.stages.slowest), t_(report.time) {}

  void run() {
    layers();
    passes();
    tensor_context_expert();
    pipeline();
    data_parallel();
    explain_exposed(report_, p_);
    rest();
    for (Explanation& each : rate_explanations(report_, p_.cluster, p_.job)) {
      report_.explanations.push_back(std::move(each));
    }
  }

 private:
  void line(std::string subject, std::string formula, std::string values, std::string source) {
    report_.explanations.push_back(
        {std::move(subject), std::move(formula), std::move(values), std::move(source)});
  }

  static std::string classes(const PassTime& pass) {
    return fmt::format("GEMM {} + attention {} + memory-bound {} + exposed communication {}",
                       format_seconds(pass.gemm), format_seconds(pass.attention),
                       format_seconds(pass.memory_bound), format_seconds(pass.exposed()));
  }

  void layers() {
    const auto slowest = static_cast<std::size_t>(p_.stages.slowest_stage);
    for (std::size_t kind = 0; kind < p_.model.kinds.size(); ++kind) {
      const std::int32_t count =
          p_.stage_layers[slowest].layers_of(static_cast<std::int32_t>(kind));
      if (count == 0) continue;
      const LayerTime& time = p_.times[kind];
      const std::string name = "time.layer." + p_.model.kinds[kind].name;
      line(name + ".forward", fmt::format("{} on stage {}, one micro-batch each", count, slowest),
           classes(time.forward), kComputeSource);
      line(name + ".backward", "input and weight gradients", classes(time.backward),
           kComputeSource);
      if (time.recompute.stream() > Seconds(0)) {
        line(name + ".recompute", "recompute before backward", classes(time.recompute),
             kComputeSource);
      }
    }
  }

  void passes() {
    const auto pass = [&](const char* subject, const PassTime& time, Seconds all) {
      if (all == Seconds(0)) return;
      line(subject, "micro-batches x (GEMM + attention + memory-bound) of the slowest stage",
           fmt::format("{} x ({} + {} + {}) = {}", m(), format_seconds(time.gemm),
                       format_seconds(time.attention), format_seconds(time.memory_bound),
                       format_seconds(all)),
           kComputeSource);
    };
    pass("time.forward", s_.forward, t_.forward);
    pass("time.backward", s_.backward, t_.backward);
    pass("time.recompute", s_.recompute, t_.recompute);
  }

  /// How NCCL would move `bytes` in this group.
  void collective(std::string subject, CollectiveKind kind, double bytes, GroupKind group) {
    const GroupShape shape = group_shape(p_.cluster, p_.layout, group);
    if (shape.ranks <= 1 || bytes < 1) return;
    const CollectiveExplanation e =
        explain_collective(p_.cluster, kind, Bytes(static_cast<std::int64_t>(bytes)), shape);
    std::string formula = fmt::format("{} ranks, {} in {}, {:.0f} GB/s bus bandwidth", shape.ranks,
                                      e.algorithm, e.protocol, e.busbw_gb_per_s);
    std::string values = fmt::format("{} in {}, bound {}", bytes_text(bytes),
                                     format_seconds(e.time), format_seconds(e.bound));
    line(std::move(subject), std::move(formula), std::move(values),
         e.sources.empty() ? "docs/collectives.md" : e.sources.front());
  }

  double activation_bytes() const {
    const auto tokens = static_cast<double>(p_.layout.micro_batch_size *
                                            ceil_div(p_.job.sequence_length, p_.layout.cp));
    return tokens * static_cast<double>(p_.model.hidden_size) *
           (p_.job.precision == DType::fp32 ? 4.0 : 2.0);
  }

  void tensor_context_expert() {
    const auto axis = [&](const char* subject, Seconds exposed, Seconds hidden, Seconds all) {
      if (exposed + hidden == Seconds(0)) return;
      line(subject, "micro-batches x exposed communication",
           fmt::format("{} x {} exposed, {} hidden; {} a step", m(), format_seconds(exposed),
                       format_seconds(hidden), format_seconds(all)),
           kStepSource);
    };
    PassTime sum = s_.forward;
    sum += s_.backward;
    sum += s_.recompute;
    axis("time.tp_exposed", sum.tp, sum.tp_hidden, t_.tp_exposed);
    if (p_.layout.tp > 1) {
      const bool cut = p_.layout.sequence_parallel;
      collective("time.tp_exposed.message",
                 cut ? CollectiveKind::all_gather : CollectiveKind::all_reduce, activation_bytes(),
                 GroupKind::tp);
    }
    axis("time.cp_exposed", sum.cp, sum.cp_hidden, t_.cp_exposed);
    axis("time.ep_exposed", sum.ep, Seconds(0), t_.ep_exposed);
    if (p_.layout.ep > 1) {
      const double copies = static_cast<double>(p_.model.num_experts_per_tok) /
                            (p_.layout.sequence_parallel ? p_.layout.tp : 1);
      collective("time.ep_exposed.message", CollectiveKind::all_to_all,
                 activation_bytes() * copies * busiest_expert_rank(p_.model, p_.job, p_.layout),
                 GroupKind::ep);
    }
  }

  void pipeline() {
    if (p_.layout.pp == 1) return;
    const auto hop = static_cast<double>(p_.stages.hop_bytes);
    const PipelineTimes& pipeline = p_.stages.pipeline;
    line("time.bubble",
         fmt::format("longest path through schedule {} without messages, {} stages of {} chunk{}, "
                     "less micro-batches x slowest stage",
                     name_of(p_.layout.schedule), p_.layout.pp, p_.layout.vpp,
                     p_.layout.vpp == 1 ? "" : "s"),
         fmt::format("{} - {} x {}: {} idle",
                     format_seconds(pipeline.without_messages - t_.straggler), m(),
                     format_seconds(s_.stream() - s_.hidden_experts), format_seconds(t_.bubble)),
         "planner/schedule/pipeline.h");
    line("time.pp_exposed",
         pipeline.slots->posts_ahead
             ? "longest path with messages less the path without; overlapped "
               "messages slow compute"
             : "longest path with messages less the path without",
         fmt::format("{} - {}, a message of {} takes {}: {} a step",
                     format_seconds(pipeline.run.length), format_seconds(pipeline.without_messages),
                     bytes_text(hop), format_seconds(p_.stages.hop), format_seconds(t_.pp_exposed)),
         kStepSource);
    collective("time.pp_exposed.message", CollectiveKind::send_recv, hop, GroupKind::pp);
  }

  void data_parallel() {
    const StepDetail& d = p_.detail;
    if (d.gather + d.reduce == Seconds(0)) return;
    line(
        "time.dp_exposed", "gathers, reductions and their copies, less the part hidden by compute",
        fmt::format("{} gathered in {}, {} reduced in {}, copied in {}; {} exposed, of it {} by "
                    "slowing compute",
                    bytes_text(d.gathered_bytes), format_seconds(d.gather),
                    bytes_text(d.reduced_bytes), format_seconds(d.reduce), format_seconds(d.copies),
                    format_seconds(t_.dp_exposed), format_seconds(d.overlap_tax)),
        kStepSource);
    std::int64_t largest = 0;
    for (std::int32_t i = 0; i < s_.kinds; ++i) {
      largest = std::max(largest, s_.units[static_cast<std::size_t>(i)].elements.dense);
    }
    const auto elements = static_cast<double>(largest);
    if (d.gather > Seconds(0)) {
      collective("time.dp_exposed.gather", CollectiveKind::all_gather,
                 elements * p_.context.rules->weight_bytes, GroupKind::dp_shard_cp);
    }
    const bool shards = placement_of(p_.layout.zero_stage, false).optimizer != Placement::replicate;
    const bool scatters = !p_.context.rules->fp32_accumulation;
    collective("time.dp_exposed.reduce",
               !shards    ? CollectiveKind::all_reduce
               : scatters ? CollectiveKind::reduce_scatter
                          : CollectiveKind::all_to_all,
               elements * gradient_bytes(*p_.context.rules, p_.layout), GroupKind::dp_shard_cp);
  }

  void rest() {
    const TimeRules& rules = *p_.context.rules;
    line("time.optimizer",
         fmt::format("{:g} bytes moved an element of a shard, then the reductions that end a step",
                     optimizer_bytes(rules, p_.layout)),
         fmt::format("{} + {}", format_seconds(t_.optimizer - p_.detail.finalize),
                     format_seconds(p_.detail.finalize)),
         kStepSource);
    const double kernels = kernels_a_microbatch(s_, p_.layout);
    line("time.launch", "time of kernel launches on the host beyond the kernels' run time",
         fmt::format("{:.0f} kernels a micro-batch x {} = {}, {} busy; {} a step", kernels,
                     format_seconds(rules.issue), format_seconds(rules.issue * kernels),
                     format_seconds(s_.stream()), format_seconds(t_.launch)),
         p_.job.cuda_graphs ? kStepSource
                            : issue_facts(p_.engine, kernels_of(p_.job, p_.engine)).source);
    if (t_.straggler > Seconds(0)) {
      line("time.straggler",
           "compute x deviation of a GPU's speed x expected maximum of as many normal numbers, "
           "less what waits for the host anyway",
           fmt::format("{} x {} x {:.2f} of {} GPUs = {}",
                       format_seconds(t_.forward + t_.backward + t_.recompute),
                       format_percent(timing_facts().gpu_speed_deviation),
                       expected_maximum_of_normals(p_.cluster.gpus), p_.cluster.gpus,
                       format_seconds(t_.straggler)),
           timing_facts().gpu_speed_source);
    }
    if (p_.detail.offload_bytes > 0) {
      line("time.offload_exposed", "host traffic less the part hidden by compute",
           fmt::format("{} at {}; {} would hide it", bytes_text(p_.detail.offload_bytes),
                       format_bandwidth(p_.cluster.host_link),
                       format_bandwidth(p_.detail.offload_required)),
           kStepSource);
    }
  }

  std::int64_t m() const { return p_.context.num_microbatches; }

  StepReport& report_;
  const PricedStep& p_;
  const StageTime& s_;
  const TimeParts& t_;
};

}  // namespace

void explain_time(StepReport& report, const PricedStep& step) { Explainer(report, step).run(); }

}  // namespace shardwise
