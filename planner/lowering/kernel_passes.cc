#include "planner/lowering/kernel_passes.h"

#include <algorithm>

#include "planner/cost/pipeline_times.h"
#include "planner/lowering/layer_items.h"

namespace shardwise {
namespace {

constexpr std::size_t kParts = 5;

Stream stream_of(GroupKind group) {
  switch (group) {
    case GroupKind::tp:
      return Stream::tensor_parallel;
    case GroupKind::cp:
      return Stream::context_parallel;
    default:
      return Stream::expert_parallel;
  }
}

}  // namespace

KernelPasses::KernelPasses(const LoweringContext& context, StageBuilder& builder)
    : context_(context),
      builder_(builder),
      steps_(kParts * context.memories.size()),
      made_(kParts * context.memories.size(), false) {}

/// Of the exchange of a layer's experts, the share that does not run beside another micro-batch.
double KernelPasses::exchange_left(std::int32_t kind) const {
  const LayerTime& time = context_.times[static_cast<std::size_t>(kind)];
  const Seconds all = time.forward.ep + time.backward.ep + time.recompute.ep;
  if (all <= Seconds(0)) return 1;
  return 1 - hidden_exchange(time, context_.time_rules, context_.layout()) / all;
}

KernelPasses::Step KernelPasses::step_of(const LayerItem& item, std::int32_t kind,
                                         std::int32_t number) {
  Step step;
  step.moves = item.moves;
  step.beside = item.beside;
  step.part = number;
  if (item.moves) {
    step.stream = stream_of(item.collective.group);
    CollectiveWork work = item.collective;
    if (step.stream == Stream::expert_parallel) work.times *= exchange_left(kind);
    step.cost = builder_.collective_cost(work);
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
    if (!runs(items[i], part)) continue;
    steps.push_back(step_of(items[i], kind, static_cast<std::int32_t>(i)));
  }
  if (part != LayerPart::forward && part != LayerPart::recompute) std::ranges::reverse(steps);
  return steps;
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
    if (step.moves) (step.beside ? beside_ : moved_) = done;
  }
  return done;
}

}  // namespace shardwise
