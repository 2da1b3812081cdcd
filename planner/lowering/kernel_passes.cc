#include "planner/lowering/kernel_passes.h"

#include <algorithm>
#include <utility>

#include "planner/cost/step/pipeline_times.h"
#include "planner/lowering/stage/layer_items.h"

namespace shardwise {
namespace {

constexpr std::size_t kParts = 5;

}  // namespace

KernelPasses::KernelPasses(const LoweringContext& context, StageBuilder& builder)
    : context_(context),
      builder_(builder),
      steps_(kParts * context.memories.size()),
      made_(kParts * context.memories.size(), false) {}

KernelPasses::Step KernelPasses::step_of(const LayerItem& item, std::int32_t number) {
  Step step;
  step.moves = item.moves;
  step.beside = item.beside;
  step.part = number;
  if (item.moves) {
    step.stream = stream_of(item.collective.group);
    step.cost = builder_.collective_cost(item.collective, item.launches);
    return step;
  }
  OpCost cost;
  cost.kernels.push_back(item.kernel);
  cost.launches = item.kernel.launches;
  step.cost = builder_.cost(std::move(cost));
  return step;
}

const std::vector<KernelPasses::Step>& KernelPasses::steps(std::int32_t kind, LayerPart part) {
  const std::size_t at = static_cast<std::size_t>(kind) * kParts + static_cast<std::size_t>(part);
  std::vector<Step>& steps = steps_[at];
  if (made_[at]) return steps;
  made_[at] = true;
  const std::vector<LayerItem>& items = context_.items[static_cast<std::size_t>(kind)];
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (runs(items[i], part)) steps.push_back(step_of(items[i], static_cast<std::int32_t>(i)));
  }
  if (part != LayerPart::forward && part != LayerPart::recompute) std::ranges::reverse(steps);
  hide_exchange(steps, kind);
  return steps;
}

/// Cuts each exchange of a layer's experts into the share that stops compute and the rest, which
/// runs beside another micro-batch: nothing waits for it.
void KernelPasses::hide_exchange(std::vector<Step>& steps, std::int32_t kind) {
  const LayerTime& time = context_.times[static_cast<std::size_t>(kind)];
  const double left = exchange_left(time, context_.time_rules, context_.layout());
  if (left >= 1) return;
  const std::vector<LayerItem>& items = context_.items[static_cast<std::size_t>(kind)];
  std::vector<Step> cut;
  for (const Step& step : steps) {
    cut.push_back(step);
    if (!step.moves || step.stream != Stream::expert_parallel) continue;
    const CollectiveWork& whole = items[static_cast<std::size_t>(step.part)].collective;
    CollectiveWork stops = whole;
    stops.times *= left;
    cut.back().cost = builder_.collective_cost(stops);
    CollectiveWork rest = whole;
    rest.times *= 1 - left;
    cut.push_back(step);
    cut.back().awaited = false;
    cut.back().part += static_cast<std::int32_t>(items.size());
    cut.back().cost = builder_.collective_cost(rest);
  }
  // What a layer frees ends with an operation that is waited for.
  if (!cut.back().awaited) std::swap(cut.back(), cut[cut.size() - 2]);
  steps = std::move(cut);
}

OpId KernelPasses::add(const ProgramOp& pass, const StageLayer& layer, LayerPart part,
                       const OperationLists& lists) {
  const std::vector<Step>& all = steps(layer.kind, part);
  bool first_kernel = true;
  OpId done = kNone;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Step& step = all[i];
    ProgramOp op = pass;
    op.stream = step.stream;
    op.part = step.part;
    op.cost = step.cost;
    std::vector<OpId> waits;
    if (i == 0 || (first_kernel && !step.moves)) waits = lists.waits;
    if (step.moves) {
      waits.push_back(builder_.last(Stream::compute));
      waits.push_back(moved_);
    } else {
      first_kernel = false;
      waits.push_back(moved_);
      moved_ = beside_;
      beside_ = kNone;
    }
    const std::vector<BufferId> none;
    const bool first = i == 0;
    const bool last = i + 1 == all.size();
    done = builder_.add(op, waits, first ? lists.allocates : none, last ? lists.frees : none,
                        first || last ? lists.uses : none);
    if (step.moves && step.awaited) (step.beside ? beside_ : moved_) = done;
  }
  return done;
}

}  // namespace shardwise
