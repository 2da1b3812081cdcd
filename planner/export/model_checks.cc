#include "planner/export/model_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "planner/cost/collectives/collective.h"
#include "planner/cost/software/usual_kernels.h"
#include "planner/export/plan_comparison.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/gradient_reductions.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

void check_fit(const PlanFit& fit, PlanComparison& comparison) {
  if (fit.report.verdict.fit != Fit::does_not_fit) return;
  std::string says = fit.words;
  says.front() = 'd';
  comparison.add({"does_not_fit", {}, says, "cheapest change: " + fit.change});
}

constexpr std::int64_t kMostSequences = 1 << 12;  // of a micro-batch that is proposed

/// Gradients reduced with each micro-batch, where the framework can wait for the last one, by a
/// setting of its own or in stage 1, or can have fewer of them.
void check_reductions(const Plan& plan, PlanComparison& comparison) {
  const Layout& layout = plan.layout;
  const std::int64_t passes = plan.job.microbatches(layout.dp(), layout.micro_batch_size);
  if (!reduces_each(layout) || passes < 2) return;
  PlanComparison::About about = {"reduces_every_microbatch",
                                 {"reduce_every_microbatch", "zero_stage"},
                                 fmt::format("gradients are reduced {} times a step", passes),
                                 "reduce with the last micro-batch"};
  Plan once = plan;
  once.layout.reduce_every_microbatch = false;
  if (comparison.add_if_faster(once, about)) return;
  Plan whole = plan;
  whole.layout.zero_stage = 1;
  whole.layout.reshard_after_forward = 1;
  if (layout.zero_stage == 3) {
    about.says = fmt::format("gradients are reduced and weights gathered {} times a step", passes);
  }
  about.fix = "ZeRO-1, which does so once a step";
  if (comparison.add_if_faster(whole, about)) return;
  constexpr std::int64_t kMostTried = 64;
  for (std::int64_t fewer = 1; fewer <= std::min(passes / 2, kMostTried); ++fewer) {
    const std::int64_t larger = layout.micro_batch_size * (passes / fewer);
    if (passes % fewer != 0 || larger > kMostSequences) continue;
    Plan few = plan;
    few.layout.micro_batch_size = static_cast<std::int32_t>(larger);
    about.fix = fmt::format("{} of {} sequences",
                            fewer == 1 ? "one micro-batch" : fmt::format("{} micro-batches", fewer),
                            larger);
    if (comparison.add_if_faster(few, about)) return;
  }
}

/// Weights gathered over nodes, where groups of a node can have them: replicas of nodes, or a
/// second shard of the weights within a node, which needs less memory.
void check_replicas(const Plan& plan, PlanComparison& comparison) {
  const Layout& layout = plan.layout;
  const std::int64_t inner = std::int64_t{layout.tp} * layout.cp;
  const std::int64_t node = plan.cluster.gpus_per_node / std::max<std::int64_t>(inner, 1);
  if (layout.zero_stage < 3 || node < 2 || layout.dp_shard <= node || layout.dp_shard % node != 0) {
    return;
  }
  PlanComparison::About about = {
      "shards_across_nodes",
      {"dp_shard", "dp_replicate", "reshard_after_forward", "zero_stage"},
      fmt::format("weights are gathered over {} nodes",
                  layout.dp_shard * inner / plan.cluster.gpus_per_node),
      fmt::format("shard over the {} ranks of a node, replicate nodes", node)};
  Plan hybrid = plan;
  hybrid.layout.dp_shard = static_cast<std::int32_t>(node);
  hybrid.layout.dp_replicate =
      static_cast<std::int32_t>(layout.dp_replicate * (layout.dp_shard / node));
  if (comparison.add_if_faster(hybrid, about)) return;
  if (layout.reshard_after_forward == node) return;
  Plan second = plan;
  second.layout.reshard_after_forward = static_cast<std::int32_t>(node);
  about.fix = fmt::format("a second shard of the weights on the {} ranks of each node", node);
  comparison.add_if_faster(second, about);
}

void check_recompute(const Plan& plan, PlanComparison& comparison) {
  if (plan.layout.recompute == Recompute::none && plan.job.recompute_operations.empty()) return;
  Plan kept = plan;
  kept.layout.recompute = Recompute::none;
  kept.job.recompute_operations.clear();
  comparison.add_if_faster(
      kept, {"recompute_for_nothing",
             {"recompute", "recompute_kind"},
             fmt::format("{} recompute frees memory that is not needed",
                         plan.layout.recompute == Recompute::full ? "full" : "selective"),
             "recompute nothing"});
}

void check_adamw(const Plan& plan, PlanComparison& comparison) {
  if (plan.job.adamw == AdamwKernel::fused || !steps_with_torch_adamw(plan.job, plan.engine)) {
    return;
  }
  Plan fused = plan;
  fused.job.adamw = AdamwKernel::fused;
  comparison.add_if_smaller(
      fused, {"adamw_not_fused",
              {"adamw"},
              fmt::format("AdamW's {} kernels hold temporaries as large as the shards in the step",
                          name_of(plan.job.adamw)),
              "AdamW(fused=True)"});
}

/// Whole logits in fp32, where the framework or its script could have another loss.
void check_loss(const Plan& plan, const Framework& framework, PlanComparison& comparison) {
  if (loss_of(plan.job, plan.engine) != LossKernel::materialised) return;
  const bool by_script = framework.form == ConfigurationForm::script ||
                         std::ranges::any_of(framework.by_script, [](const ScriptField& each) {
                           return each.field == "loss";
                         });
  for (const LossKernel better : {LossKernel::chunked, LossKernel::fused, LossKernel::fused_fp32}) {
    Plan other = plan;
    other.job.loss = better;
    if (!by_script && !comparison.can_be_told(other)) continue;
    const bool said = comparison.add_if_smaller(
        other, {"loss_on_whole_logits",
                {"loss"},
                "the loss holds whole logits, a copy of them in fp32 and their gradient",
                fmt::format("a {} loss", name_of(better))});
    if (said) return;
  }
}

/// Of the time that a collective takes, what it takes however few bytes it has.
double latency_share(const ClusterSpec& cluster, CollectiveKind kind, std::int64_t bytes,
                     const GroupShape& group) {
  const Seconds once = collective_time(cluster, kind, Bytes(bytes), group);
  const Seconds twice = collective_time(cluster, kind, Bytes(2 * bytes), group);
  return std::clamp(2 - twice / once, 0.0, 1.0);
}

constexpr double kMostLatency = 0.5;       // from here on a bucket is said to be small
constexpr double kLittleLatency = 1. / 3;  // and up to there the proposed one is large

/// A bucket whose collective takes its latency rather than the time of its bytes.
void check_bucket(const Plan& plan, const std::string& name, BucketOf bucket_of,
                  std::int64_t elements, PlanComparison& comparison) {
  const Layout& layout = plan.layout;
  const bool gradients = bucket_of == BucketOf::gradients;
  const bool sharded = layout.zero_stage > 0;
  if (!gradients && !sharded) return;
  const GroupShape group =
      group_shape(plan.cluster, layout, sharded ? GroupKind::dp_shard_cp : GroupKind::dp_cp);
  if (group.ranks < 2) return;
  const CollectiveKind kind = !gradients ? CollectiveKind::all_gather
                              : sharded  ? CollectiveKind::reduce_scatter
                                         : CollectiveKind::all_reduce;
  const std::int64_t wide = gradients && layout.fp32_gradients ? 4 : 2;
  const double share = latency_share(plan.cluster, kind, elements * wide, group);
  if (share < kMostLatency) return;
  std::int64_t larger = elements;
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  while (larger < kMost &&
         latency_share(plan.cluster, kind, larger * wide, group) > kLittleLatency) {
    larger *= 2;
  }
  const Seconds takes = collective_time(plan.cluster, kind, Bytes(elements * wide), group);
  const Seconds large = collective_time(plan.cluster, kind, Bytes(larger * wide), group);
  const double times = static_cast<double>(larger) / static_cast<double>(elements);
  comparison.add_at(
      name,
      {"bucket_below_the_latency",
       {},
       fmt::format(
           "buckets of {} elements: the {} of {} over {} ranks takes {}, {:.0f} % of it whatever "
           "its size",
           elements, name_of(kind), format_bytes(Bytes(elements * wide)), group.ranks,
           format_seconds(takes), share * 100),
       fmt::format("{} elements: {} for {:.0f} times as many bytes", larger, format_seconds(large),
                   times)});
}

}  // namespace

Predictions check_predictions(const Plan& plan, const Framework& framework,
                              const Settings& settings) {
  PlanComparison comparison(plan, framework, settings);
  PlanFit fit = plan_fit(plan, framework);
  check_fit(fit, comparison);
  check_reductions(plan, comparison);
  check_replicas(plan, comparison);
  check_recompute(plan, comparison);
  check_adamw(plan, comparison);
  check_loss(plan, framework, comparison);
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.values.find(spec.name);
    if (!spec.bucket_of || !settings.given.contains(spec.name) || given == settings.values.end()) {
      continue;
    }
    const std::optional<std::int64_t> elements = parse_integer(given->second);
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (elements && *elements > 0 && *elements < kMost) {
      check_bucket(plan, spec.name, *spec.bucket_of, *elements, comparison);
    }
  }
  return {std::move(fit), comparison.take()};
}

}  // namespace shardwise
