#include <gtest/gtest.h>

#include "planner/lowering/price.h"
#include "planner/lowering/stage/layer_items.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

/// The seconds of a layer's pass, by what they are for.
struct Sums {
  Seconds gemm;
  Seconds attention;
  Seconds memory_bound;
  Seconds tp;
  Seconds cp;
  Seconds ep;
};

Seconds& part_of(Sums& sums, const LayerItem& item) {
  if (!item.moves) {
    return item.kernel.kind == KernelKind::gemm        ? sums.gemm
           : item.kernel.kind == KernelKind::attention ? sums.attention
                                                       : sums.memory_bound;
  }
  return item.collective.group == GroupKind::tp   ? sums.tp
         : item.collective.group == GroupKind::cp ? sums.cp
                                                  : sums.ep;
}

Seconds price_of(const LayerItem& item, const Plan& plan) {
  OpCost cost;
  if (item.moves) {
    cost.collectives.push_back(item.collective);
  } else {
    cost.kernels.push_back(item.kernel);
  }
  return price(cost, plan.cluster, plan.layout, {});
}

void expect_equal(Seconds noted, Seconds closed, const std::string& what) {
  EXPECT_NEAR(noted.value(), closed.value(), 1e-12 + 1e-9 * closed.value()) << what;
}

void expect_pass(const Sums& sums, const PassTime& time, const std::string& what) {
  expect_equal(sums.gemm, time.gemm, what + " gemm");
  expect_equal(sums.attention, time.attention, what + " attention");
  expect_equal(sums.memory_bound, time.memory_bound, what + " memory-bound");
  expect_equal(sums.tp, time.tp + time.tp_hidden, what + " tp");
  expect_equal(sums.cp, time.cp + time.cp_hidden, what + " cp");
  expect_equal(sums.ep, time.ep, what + " ep");
}

/// The host issues as many kernels for the items of a layer as for the layer.
void expect_launches(const Plan& plan, const std::string& what) {
  const std::vector<std::vector<LayerItem>> all = layer_items(plan);
  const std::vector<LayerTime> times =
      layer_times(plan.model, plan.job, plan.engine, plan.cluster, plan.layout);
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      double launches = 0;
      for (const LayerItem& item : all[kind]) {
        if (item.pass == pass) launches += item.moves ? item.launches : item.kernel.launches;
      }
      const PassTime& time = pass == Pass::forward ? times[kind].forward : times[kind].backward;
      EXPECT_NEAR(launches, time.kernels, 1e-9 * time.kernels)
          << what << ", " << plan.model.kinds[kind].name;
    }
  }
}

/// Prices what a layer notes and compares it with what the closed form sums, class by class.
void expect_same(const Plan& plan, const std::string& what) {
  expect_launches(plan, what);
  for (const LayerSpec& layer : plan.model.kinds) {
    std::vector<LayerItem> items;
    const LayerTime time = layer_time(plan.model, layer, plan.job, plan.engine, plan.cluster,
                                      plan.layout, nullptr, &items);
    Sums forward;
    Sums backward;
    Sums again;
    for (const LayerItem& item : items) {
      const Seconds each = price_of(item, plan);
      part_of(item.pass == Pass::forward ? forward : backward, item) += each;
      part_of(again, item) += each * item.again;
    }
    expect_pass(forward, time.forward, what + " " + layer.name + " forward");
    expect_pass(backward, time.backward, what + " " + layer.name + " backward");
    expect_equal(again.gemm + again.attention + again.memory_bound, time.recompute.compute(),
                 what + " " + layer.name + " recompute");
  }
}

std::vector<Layout> layouts() {
  std::vector<Layout> all = {{}};
  Layout tensor;
  tensor.tp = 4;
  all.push_back(tensor);
  tensor.sequence_parallel = true;
  all.push_back(tensor);
  tensor.recompute = Recompute::full;
  all.push_back(tensor);
  for (const ContextParallelKind kind :
       {ContextParallelKind::ring, ContextParallelKind::all_gather, ContextParallelKind::ulysses}) {
    Layout context;
    context.tp = 2;
    context.cp = 2;
    context.cp_kind = kind;
    all.push_back(context);
  }
  Layout selective;
  selective.recompute = Recompute::selective;
  all.push_back(selective);
  return all;
}

const std::vector<ModelSpec>& models() {
  static const std::vector<ModelSpec> kAll = {
      llama(2, 512, 1408, 8, 4, 32000), gpt(2, 512, 8, 32000), mixture(2, 512, 8, 8, 2, 512, 256)};
  return kAll;
}

TEST(LayerItems, CostWhatTheClosedFormSums) {
  for (const ModelSpec& model : models()) {
    for (const std::string& name : engine_names()) {
      int number = 0;
      for (const Layout& layout : layouts()) {
        Plan plan = small_plan(*find_engine(name), layout, 1);
        plan.model = model;
        expect_same(plan, model.name + " " + name + " layout " + std::to_string(number++));
      }
    }
  }
}

TEST(LayerItems, CostTheSameWithOtherKernels) {
  for (const ModelSpec& model : models()) {
    for (const Layout& layout : layouts()) {
      Plan plan = small_plan(megatron_ddp(), layout, 1);
      plan.model = model;
      plan.job.attention = AttentionKernel::materialised;
      plan.job.dropout = 0.1;
      expect_same(plan, model.name + " materialised");
      plan.job = small_plan(megatron_ddp(), layout, 1).job;
      plan.job.precision = DType::fp8;
      expect_same(plan, model.name + " fp8");
      plan.job.precision = DType::bf16;
      plan.job.frozen_base = true;
      expect_same(plan, model.name + " frozen");
    }
  }
}

TEST(LayerItems, CostTheSameWithExpertsSpread) {
  for (const ExpertDispatch dispatch : {ExpertDispatch::all_to_all, ExpertDispatch::deduplicated}) {
    Layout layout;
    layout.tp = 2;
    layout.dp_shard = 8;
    layout.ep = 8;
    layout.sequence_parallel = true;
    Plan plan = small_plan(megatron_ddp(), layout, 1);
    plan.model = mixture(2, 512, 8, 8, 2, 512, 256);
    plan.job.expert_dispatch = dispatch;
    expect_same(plan, "ep");
    plan.layout.ep = 4;
    plan.layout.etp = 2;
    expect_same(plan, "etp");
  }
}

}  // namespace
}  // namespace shardwise::test
