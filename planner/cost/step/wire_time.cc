#include "planner/cost/step/wire_time.h"

#include <algorithm>
#include <vector>

#include "planner/cost/memory/unit_elements.h"
#include "planner/cost/step/pass_units.h"
#include "planner/cost/step/pipeline_data.h"
#include "planner/cost/step/stage_times.h"
#include "planner/cost/step/unit_prices.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Seconds that a link of one tier is busy for one layer of a kind.
struct LayerWire {
  double microbatch = 0;
  double step = 0;
};

/// What data parallelism moves of a layer, over one tier. The rules are those of pass_unit.
class DataWire {
 public:
  DataWire(const LeafContext& context, const StreamRules& rules, OnWire read)
      : context_(context), rules_(rules), read_(read), prices_(context) {}

  LayerWire of(const LayerPace& layer) const {
    const Layout& layout = *context_.layout;
    LayerWire wire;
    if (!context_.groups->any) return wire;
    const UnitElements unit = unit_elements(*layer.memory, layer.copied, *context_.rules->engine,
                                            layout, context_.rules->shard_multiple);
    const StatePlacement& placement = prices_.placement();
    const bool padded = reduces_by_unit(context_) && placement.optimizer != Placement::replicate;
    const OwnRoots roots = own_roots(*layer.memory, layer.place, *context_.rules->engine, layout);
    const auto dense =
        static_cast<double>((padded ? unit.padded_dense : unit.dense) + roots.padded());
    const auto routed = static_cast<double>(padded ? unit.padded_routed : unit.routed);
    const auto frozen = static_cast<double>(unit.padded_frozen);
    if (rules_.sharded) {
      PassUnit kept;
      kept.root = layer.root;
      kept.head = layer.head;
      kept.tied_to_head = layer.tied_to_head;
      double& gathers = rules_.kept_over_step(kept) ? wire.step : wire.microbatch;
      const double whole = prices_.gather(dense + frozen, routed, read_).value();
      const double again =
          rules_.to_groups
              ? (prices_.gather_again(dense, 0, read_) + prices_.gather(0, routed, read_)).value()
              : prices_.gather_again(dense + frozen, routed, read_).value();
      gathers += rules_.keeps_parts ? again : whole;
      if (rules_.keeps_parts) wire.step += whole - again;  // the first of a step
      if (!rules_.kept_to_backward(kept)) gathers += again;
    } else if (placement.optimizer != Placement::replicate) {
      wire.step += prices_.gather(dense, routed, read_).value();
    }
    if (placement.optimizer == Placement::shard_both) {
      wire.step += prices_.gather_outer(dense, routed, read_).value();
    }
    (rules_.every ? wire.microbatch : wire.step) +=
        prices_.reduce_moves(dense, routed, read_).value();
    wire.step += prices_.reduce_outer(dense, routed, read_).value();
    return wire;
  }

 private:
  const LeafContext& context_;
  const StreamRules& rules_;
  OnWire read_;
  UnitPrices prices_;
};

/// Messages that a stage sends, of one size.
double messages_sent(const Layout& layout, std::int32_t stage, double num_microbatches) {
  if (layout.pp == 1) return 0;
  const bool end = stage == 0 || stage + 1 == layout.pp;
  if (copies_model(layout)) return (end ? 1 : 2) * num_microbatches;
  const bool folded = facts_of(layout).v_shaped;
  return num_microbatches * (2 * chunks_of_stage(layout) - (end ? folded ? 2 : 1 : 0));
}

/// How often as busy as by one rank a shared link of a tier is: by all its ranks where they are of
/// one stage, which send as much, else by one of them.
double ranks_on_link(const ClusterSpec& cluster, const Layout& layout, std::size_t tier) {
  const LinkTier& links = cluster.tiers[tier];
  const std::int64_t stage = layout.world() / layout.pp;
  const std::int64_t inner = tier == 0 ? 1 : cluster.tiers[tier - 1].domain_size;
  const auto alike = [&](std::int64_t ranks) {
    return layout.pp == 1 || (layout.order.back() == Axis::pp && stage % ranks == 0);
  };
  double busiest = 1;
  if (links.gpus_per_link > 1 && alike(links.gpus_per_link)) {
    busiest = static_cast<double>(std::min<std::int64_t>(links.gpus_per_link, layout.world()));
  }
  if (links.oversubscription > 1 && inner > 1 && alike(inner)) {
    const auto ranks = static_cast<double>(std::min(inner, layout.world()));
    const double capacity =
        static_cast<double>(inner) / std::max(1, links.gpus_per_link) / links.oversubscription;
    busiest = std::max(busiest, ranks / capacity);
  }
  return busiest;
}

}  // namespace

Seconds wire_time(const StageTimes& stages, const LeafContext& context) {
  const ClusterSpec& cluster = *context.rules->cluster;
  if (cluster.gpu.cores_per_rank > 0) return Seconds(0);  // links were measured with the ranks
  const Layout& layout = *context.layout;
  const PipelineTimes& pipeline = stages.pipeline;
  const auto chunks = static_cast<std::size_t>(pipeline.slots->chunks);
  const auto m = static_cast<double>(context.num_microbatches);
  // Each of DualPipe's two copies meets half of the micro-batches.
  const bool copies = copies_model(layout);
  const double met = copies ? m / 2 : m;
  const StreamRules rules = stream_rules(context);
  std::vector<double> of_kind(pipeline.layers.size());
  double busiest = 0;
  for (std::size_t tier = 0; tier < cluster.tiers.size(); ++tier) {
    const DataWire data(context, rules, OnWire{tier});
    for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
      const LayerPace& layer = pipeline.layers[kind];
      const LayerWire wire = data.of(layer);
      of_kind[kind] = (layer.traffic.seconds[tier] + wire.microbatch) * met + wire.step;
    }
    const OnWire read{tier};
    const DataParallelTables& groups = *context.groups;
    const double gradient = gradient_bytes(*context.rules, layout);
    // A tied table's gradients are summed by the first stage and the one that holds its copy.
    const double tied =
        read(groups.tied_all_reduce, gradient * static_cast<double>(stages.tied_elements)).value();
    double most = 0;
    for (std::int32_t stage = 0; stage < layout.pp; ++stage) {
      double busy = stages.hop_traffic.seconds[tier] * messages_sent(layout, stage, m);
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        for (const PacedRun& run :
             pipeline.runs_of(static_cast<std::size_t>(stage) * chunks + chunk)) {
          const auto kind = static_cast<std::size_t>(run.kind);
          busy += of_kind[kind] * run.layers;
          if (pipeline.layers[kind].copied > 0) busy += tied;
        }
      }
      if (stage == 0) busy += tied;
      if (copies) {
        const double summed =
            elements_of_copies(pipeline, context, static_cast<std::size_t>(stage));
        busy += read(groups.tied_all_reduce, gradient * summed).value();
      }
      most = std::max(most, busy);
    }
    busiest = std::max(busiest, most * ranks_on_link(cluster, layout, tier));
  }
  return Seconds(busiest);
}

}  // namespace shardwise
