#include "simulator/workload/prices.h"

#include <algorithm>

#include "planner/cost/collectives/collective_links.h"
#include "planner/cost/collectives/collective_table.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/cost/software/time_rules.h"
#include "planner/cost/software/timing.h"
#include "planner/lowering/price.h"
#include "simulator/workload/layer_transfers.h"
#include "simulator/workload/pass_parts.h"

namespace shardwise::sim {
namespace {

/// The tier of the cluster that a crossing is of.
std::size_t tier_index(const ClusterSpec& cluster, const LinkTier* tier) {
  return static_cast<std::size_t>(tier - cluster.tiers.data());
}

/// The pass of a layer that an operation is, or nullptr.
const PassTime* layers_pass(const OpCost& cost, const std::vector<LayerTime>& layers) {
  if (cost.layers.empty()) return nullptr;
  const LayerWork& work = cost.layers.front();
  return &sim::pass_of(layers[static_cast<std::size_t>(work.kind)], work.part);
}

/// Which costs are of operations of passes.
std::vector<bool> costs_of_passes(const StageProgram& stage) {
  std::vector<bool> of_pass(stage.costs.size(), false);
  for (const ProgramOp& op : stage.operations) {
    const bool passes = op.role == OpRole::forward || op.role == OpRole::backward ||
                        op.role == OpRole::backward_input || op.role == OpRole::backward_weight ||
                        op.role == OpRole::recompute;
    if (passes) of_pass[static_cast<std::size_t>(op.cost)] = true;
  }
  return of_pass;
}

/// Share of an operation's time that is compute of a pass: what a slow GPU takes longer for. Its
/// links and the memory that its optimizer waits for are as fast as any other's.
double pass_compute(const OpCost& cost, bool of_pass, const std::vector<LayerTime>& layers) {
  if (!cost.kernels.empty()) return of_pass ? 1 : 0;
  const PassTime* pass = layers_pass(cost, layers);
  if (pass == nullptr || pass->stream() <= Seconds(0)) return 0;
  const LayerWork& work = cost.layers.front();
  if (work.part == LayerPart::backward_weight) return 1;
  const bool input = work.part == LayerPart::backward_input;
  const Seconds put_off =
      input ? layers[static_cast<std::size_t>(work.kind)].weight_gradient : Seconds(0);
  return (pass->compute() - put_off) / (pass->stream() - put_off);
}

/// Shares of an operation's time that go to matrix products and to memory-bound kernels.
void split_compute(const OpCost& cost, const std::vector<LayerTime>& layers, CostPrice& made) {
  if (!cost.kernels.empty()) {
    const KernelKind kind = cost.kernels.front().kind;
    made.gemm_share = kind == KernelKind::gemm ? 1 : 0;
    made.memory_share = kind == KernelKind::memory_bound ? 1 : 0;
    return;
  }
  const PassTime* pass = layers_pass(cost, layers);
  if (pass == nullptr || pass->stream() <= Seconds(0)) return;
  made.gemm_share = pass->gemm / pass->stream();
  made.memory_share = pass->memory_bound / pass->stream();
  made.moved_share = pass->exposed() / pass->stream();
}

/// What was measured of a CPU includes its memory and its links: ranks share processors alone.
void share_processors(const GpuSpec& gpu, bool moves, CostPrice& made) {
  made.threads = moves ? kCollectiveThreads : gpu.sm_count;
  made.room = std::max(gpu.cores_per_rank, made.threads);
  made.memory_share = 0;
}

double passes_through_memory(const CollectiveWork& work, const Crossing& at, bool registered) {
  const TimingFacts::MemoryPasses& times = timing_facts().memory_passes;
  switch (work.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      return registered ? times.registered_gather : times.ring;
    case CollectiveKind::all_reduce:
      if (at.tier->in_network == InNetwork::none) return times.ring;
      return registered ? times.registered_in_switch : times.in_switch;
    case CollectiveKind::reduce_scatter:
      return times.ring;
    case CollectiveKind::all_to_all:
      return registered ? times.registered_pairs : times.pairs;
    case CollectiveKind::send_recv:
      return times.message;
  }
  return times.ring;
}

}  // namespace

OverlapTax communication_tax(const Plan& plan, bool across_nodes, Transport transport) {
  const TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
  OverlapTax tax = across_nodes ? rules.overlap_tax_inter : rules.overlap_tax_intra;
  if (transport == Transport::usual) return tax;
  if (transport == Transport::copy_engines && !across_nodes) return {};
  const std::vector<LinkTier>& tiers = plan.cluster.tiers;
  const bool sharp = !tiers.empty() && tiers.back().in_network == InNetwork::sharp;
  const TimingFacts& facts = timing_facts();
  const double sms = !across_nodes ? facts.registered_sms_within_node
                     : sharp       ? facts.registered_sms_in_network
                                   : facts.registered_sms_across_nodes;
  const double other = sms / std::max(1, plan.cluster.gpu.sm_count);
  // Matrix products that do not fill the GPU in one wave lose what everything else does.
  if (tax.gemm == tax.other) tax.gemm = std::min(tax.gemm, other);
  tax.other = std::min(tax.other, other);
  return tax;
}

TierTraffic traffic_of(const CollectiveWork& work, const ClusterSpec& cluster,
                       const Layout& layout) {
  return work.times * tier_traffic(cluster, work.kind, static_cast<double>(work.bytes),
                                   shape_of(work, cluster, layout));
}

/// Of each tier's link, what a transfer asks for that takes so long alone.
void share_links(const TierTraffic& traffic, CostPrice& made) {
  if (made.seconds <= 0) return;
  for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
    made.link_share[tier] = std::min(1.0, traffic.seconds[tier] / made.seconds);
  }
}

/// The transfers inside a pass, after all that is there.
void add_inside(const InsideTransfers& found, std::size_t pass, std::vector<CostPrice>& prices) {
  CostPrice& made = prices[pass];
  if (found.axes.empty() || made.seconds <= 0) return;
  made.rest = found.rest;
  made.inside = {static_cast<std::uint32_t>(prices.size()),
                 static_cast<std::uint32_t>(prices.size() + found.axes.size())};
  for (const InsideTransfer& axis : found.axes) {
    CostPrice& transfer = prices.emplace_back();
    transfer.seconds = axis.seconds;
    share_links(axis.traffic, transfer);
  }
}

double memory_traffic(const CollectiveWork& work, const ClusterSpec& cluster, const Layout& layout,
                      Transport transport) {
  const TierTraffic traffic = traffic_of(work, cluster, layout);
  const bool registered = transport != Transport::usual;
  double bytes = 0;
  const GroupLinks links = links_of(cluster, shape_of(work, cluster, layout));
  // All that a rank sends goes over the innermost tier or, what leaves its node, over a NIC.
  bool first = true;
  for (const Crossing& at : links) {
    const std::size_t tier = tier_index(cluster, at.tier);
    if (traffic.bytes[tier] == 0) continue;
    if (first) bytes += passes_through_memory(work, at, registered) * traffic.bytes[tier];
    if (tier > 0 && !registered) {
      bytes += timing_facts().memory_passes.network_buffer * traffic.bytes[tier];
    }
    first = false;
  }
  return bytes;
}

Prices prices_of(const Plan& plan, const StepProgram& program, Transport transport) {
  const TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
  const OverlapTax within = communication_tax(plan, false, transport);
  const OverlapTax across = communication_tax(plan, true, transport);
  const std::vector<LayerTime> layers = layer_passes(plan);
  const LayerTransfers transfers(plan, layers);
  Prices prices(program.stages.size());
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    const std::vector<bool> of_pass = costs_of_passes(stage);
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      const OpCost& cost = stage.costs[c];
      CostPrice& made = prices[s].emplace_back();
      made.seconds = price(cost, plan.cluster, plan.layout, layers).value();
      made.launches = cost.launches;
      if (!cost.layers.empty() || !cost.kernels.empty()) {
        made.excess = rules.slowest_gpu_excess * pass_compute(cost, of_pass[c], layers);
        made.seconds *= 1 + made.excess;
        split_compute(cost, layers, made);
      }
      if (plan.cluster.gpu.cores_per_rank > 0) {
        share_processors(plan.cluster.gpu, !cost.collectives.empty(), made);
        continue;
      }
      if (cost.collectives.empty()) continue;
      const CollectiveWork& work = cost.collectives.front();
      const TierTraffic traffic = traffic_of(work, plan.cluster, plan.layout);
      bool across_nodes = false;
      share_links(traffic, made);
      for (std::size_t tier = 1; tier < kMaxTiers; ++tier) across_nodes |= traffic.bytes[tier] > 0;
      made.tax = across_nodes ? across : within;
      const double moved = memory_traffic(work, plan.cluster, plan.layout, transport);
      const double memory =
          plan.cluster.gpu.memory_bandwidth.value() * plan.cluster.gpu.memory_bound.bandwidth_share;
      if (made.seconds > 0) made.memory_share = std::min(1.0, moved / memory / made.seconds);
    }
    if (plan.cluster.gpu.cores_per_rank > 0) continue;
    for (std::size_t c = 0; c < stage.costs.size(); ++c) {
      if (stage.costs[c].layers.empty()) continue;
      InsideTransfers inside = transfers.of(stage.costs[c].layers.front());
      inside.rest += prices[s][c].seconds * prices[s][c].excess / (1 + prices[s][c].excess);
      add_inside(inside, c, prices[s]);
    }
  }
  return prices;
}

}  // namespace shardwise::sim
