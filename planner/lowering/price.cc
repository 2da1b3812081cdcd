#include "planner/lowering/price.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "planner/cost/collectives/collective.h"
#include "planner/cost/collectives/collective_table.h"
#include "planner/cost/kernels/compute.h"
#include "planner/cost/layer/layer_pricer.h"
#include "planner/cost/software/time_rules.h"
#include "planner/cost/step/pipeline_times.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

Seconds layer_price(const LayerWork& work, const std::vector<LayerTime>& layers) {
  const auto kind = static_cast<std::size_t>(work.kind);
  SHARDWISE_CHECK(kind < layers.size(), std::to_string(work.kind));
  const LayerTime& time = layers[kind];
  switch (work.part) {
    case LayerPart::forward:
      return time.forward.stream() * work.times;
    case LayerPart::backward:
      return time.backward.stream() * work.times;
    case LayerPart::backward_input:
      return (time.backward.stream() - time.weight_gradient) * work.times;
    case LayerPart::backward_weight:
      return time.weight_gradient * work.times;
    case LayerPart::recompute:
      return time.recompute.stream() * work.times;
  }
  return {};
}

Seconds kernel_price(const KernelWork& work, const GpuSpec& gpu) {
  switch (work.kind) {
    case KernelKind::gemm: {
      const GemmWork& g = work.gemm;
      return (g.groups > 1 ? grouped_gemm_time(gpu, g.dtype, g.groups, g.m, g.n, g.k, g.output)
                           : gemm_time(gpu, g.dtype, std::llround(g.m), g.n, g.k, g.output)) *
             work.times;
    }
    case KernelKind::attention:
      return attention_time(gpu, work.gemm.dtype, work.attention, work.pass) *
             (work.slowdown * work.times);
    case KernelKind::memory_bound:
      return memory_bound_time(gpu, Bytes(static_cast<std::int64_t>(work.bytes)), work.move,
                               work.pass, work.gemm.dtype) *
             work.times;
  }
  return {};
}

/// All but collectives.
Seconds local_price(const OpCost& cost, const ClusterSpec& cluster,
                    const std::vector<LayerTime>& layers) {
  Seconds sum;
  for (const LayerWork& work : cost.layers) sum += layer_price(work, layers);
  for (const KernelWork& work : cost.kernels) sum += kernel_price(work, cluster.gpu);
  if (cost.host_bytes > 0) sum += Bytes(cost.host_bytes) / cluster.host_link;
  if (cost.host_elements > 0) {
    sum += Seconds(static_cast<double>(cost.host_elements) /
                   time_rules({}, {}, cluster).host_optimizer_elements_per_s);
  }
  return sum;
}

}  // namespace

GroupShape shape_of(const CollectiveWork& work, const ClusterSpec& cluster, const Layout& layout) {
  const GroupShape shape = group_shape(cluster, layout, work.group);
  return work.ends ? ends_of(shape) : work.node ? node_of(shape) : shape;
}

std::vector<LayerTime> layer_passes(const Plan& plan) {
  std::vector<LayerTime> layers =
      layer_times(plan.model, plan.job, plan.engine, plan.cluster, plan.layout);
  const TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
  for (LayerTime& layer : layers) {
    const double left = exchange_left(layer, rules, plan.layout);
    for (PassTime* pass : {&layer.forward, &layer.backward, &layer.recompute}) {
      pass->ep = pass->ep * left;
    }
  }
  return layers;
}

Seconds price(const OpCost& cost, const ClusterSpec& cluster, const Layout& layout,
              const std::vector<LayerTime>& layers) {
  Seconds sum = local_price(cost, cluster, layers);
  for (const CollectiveWork& work : cost.collectives) {
    sum += collective_time(cluster, work.kind, Bytes(work.bytes), shape_of(work, cluster, layout)) *
           work.times;
  }
  return sum;
}

std::vector<std::vector<Seconds>> price(const Plan& plan, const StepProgram& program) {
  const std::vector<LayerTime> layers = layer_passes(plan);
  std::vector<std::vector<Seconds>> prices;
  prices.reserve(program.stages.size());
  for (const StageProgram& stage : program.stages) {
    std::vector<Seconds> of_stage;
    of_stage.reserve(stage.costs.size());
    for (const OpCost& cost : stage.costs) {
      of_stage.push_back(price(cost, plan.cluster, plan.layout, layers));
    }
    prices.push_back(std::move(of_stage));
  }
  return prices;
}

}  // namespace shardwise
