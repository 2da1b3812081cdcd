#include "planner/lowering/kernel_passes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "planner/cost/step/pipeline_times.h"
#include "planner/lowering/stage/layer_items.h"

namespace shardwise {
namespace {

constexpr std::size_t kParts = 5;

bool is_forward(LayerPart part) {
  return part == LayerPart::forward || part == LayerPart::recompute;
}

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
  if (context_.regions) {
    steps = regions(in_order(kind, part));
    return steps;
  }
  const std::vector<LayerItem>& items = context_.items[static_cast<std::size_t>(kind)];
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (runs(items[i], part)) steps.push_back(step_of(items[i], static_cast<std::int32_t>(i)));
  }
  if (!is_forward(part)) std::ranges::reverse(steps);
  hide_exchange(steps, kind);
  return steps;
}

/// What follows the last collective of a forward pass works element by element on what that sums
/// (a residual, rows of positions), and ranks do it before, as part of what is summed. A recompute
/// ends before that collective: nobody reads what it would hand on.
void KernelPasses::settle_end(std::vector<Share>& items, LayerPart part) {
  if (!is_forward(part)) return;
  const auto moves = [](const Share& each) { return each.item->moves; };
  const auto found = std::find_if(items.rbegin(), items.rend(), moves);
  if (found == items.rend() || found->item->beside) return;
  const auto last = std::prev(found.base());
  if (part == LayerPart::recompute) {
    items.erase(last, items.end());
  } else {
    std::rotate(last, std::next(last), items.end());
  }
}

/// And backward, under sequence parallelism: what precedes the first gather of the gradient works
/// on it element by element, and ranks do it behind, with what reads the gathered one.
void KernelPasses::settle_begin(std::vector<Share>& items) const {
  if (!context_.layout().sequence_parallel) return;
  const auto found =
      std::ranges::find_if(items, [](const Share& each) { return each.item->moves; });
  const bool gathers = found != items.end() && !found->item->beside &&
                       found->item->collective.group == GroupKind::tp &&
                       found->item->collective.kind == CollectiveKind::all_gather;
  if (gathers) std::rotate(items.begin(), found, std::next(found));
}

/// The items of a pass in the order in which they run. Where a head works on some rows at a time,
/// up to the sum of its input's gradient, each has its share of them.
std::vector<KernelPasses::Share> KernelPasses::in_order(std::int32_t kind, LayerPart part) const {
  std::vector<Share> all;
  for (const LayerItem& item : context_.items[static_cast<std::size_t>(kind)]) {
    if (runs(item, part)) all.push_back({&item, 1});
  }
  if (!is_forward(part)) std::ranges::reverse(all);
  settle_end(all, part);
  if (part == LayerPart::backward) settle_begin(all);
  const bool head = context_.memories[static_cast<std::size_t>(kind)].role == LayerRole::head;
  if (!head || part != LayerPart::backward || all.empty()) return all;
  // Under sequence parallelism the input of all rows is gathered once.
  const bool gathers = context_.layout().sequence_parallel && all.front().item->moves;
  const auto begin = all.begin() + (gathers ? 1 : 0);
  if (begin == all.end() || begin->item->moves) return all;
  const std::int64_t chunks = std::llround(begin->item->kernel.times);
  const auto whole = std::find_if(begin, all.end(), [](const Share& each) {
    return each.item->moves && each.item->collective.kind != CollectiveKind::all_gather;
  });
  std::vector<Share> cut(all.begin(), begin);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (auto each = begin; each != whole; ++each) {
      cut.push_back({each->item, 1.0 / static_cast<double>(chunks)});
    }
  }
  cut.insert(cut.end(), whole, all.end());
  return cut;
}

std::vector<KernelPasses::Step> KernelPasses::regions(const std::vector<Share>& items) {
  std::vector<Step> made;
  OpCost open;
  open.launches = 0;
  std::int32_t between = 0;
  const auto add = [&](std::int32_t cost, bool moves) {
    // Regions have even numbers, collectives odd ones.
    const std::int32_t before =
        moves ? between++ : static_cast<std::int32_t>(made.size()) - between;
    made.emplace_back();
    made.back().part = 2 * before + (moves ? 1 : 0);
    made.back().moves = moves;
    made.back().cost = cost;
  };
  const auto close = [&] {
    if (open.kernels.empty()) return;
    open.kernels.front().name.clear();  // a region has a number
    add(builder_.cost(std::exchange(open, {})), false);
    open.launches = 0;
  };
  bool beside = false;
  for (const auto& [item, share] : items) {
    if (!item->moves) {
      open.kernels.push_back(item->kernel);
      open.kernels.back().times *= share;
      open.kernels.back().launches *= share;
      open.launches += open.kernels.back().launches;
      if (std::exchange(beside, false)) close();
      continue;
    }
    close();
    CollectiveWork work = item->collective;
    work.times *= share;
    add(builder_.collective_cost(work, item->launches * share), true);
    made.back().beside = beside = item->beside;
    made.back().stream = stream_of(work.group);
  }
  close();
  return made;
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
