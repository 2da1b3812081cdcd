#include "executor/engine/gradient_flow.h"

#include <algorithm>
#include <array>

#include "planner/spec/check.h"

namespace shardwise::exec {

std::vector<TensorPlace> parameters_of(const ModelSpec& model, const StateUnits& units,
                                       std::int32_t layer) {
  const auto l = static_cast<std::size_t>(layer);
  std::vector<TensorPlace> places = units.places[l];
  const LayerSpec& kind = model.kinds[static_cast<std::size_t>(model.layers[l])];
  if (kind.role == LayerRole::head && model.tie_word_embeddings) {
    places.push_back(units.places.front().front());
  }
  return places;
}

std::size_t unit_of(const StateUnits& units, const ProgramOp& op) {
  return op.layer >= 0 ? units.of_layer(op.layer) : static_cast<std::size_t>(op.part);
}

GradientFlow::GradientFlow(const StageProgram& program, const ModelSpec& model,
                           const RankState& state, MemoryItems& items, ProgramBuffers& buffers)
    : program_(program),
      state_(state),
      buffers_(buffers),
      staged_(state.placement().gradients != Placement::replicate &&
              state.place().shard_ranks > 1) {
  reductions(program);
  std::map<Part, std::vector<OpId>> makers;
  for (OpId op = 0; op < program.operations.size(); ++op) {
    const ProgramOp& each = program.operations[op];
    if (each.role != OpRole::backward) continue;
    targets_[op];
    for (const TensorPlace& place : parameters_of(model, state.units(), each.layer)) {
      const std::int32_t owner = state.units().tensor(place).layer;
      std::vector<OpId>& ops = makers[{place.unit, each.microbatch, owner}];
      if (ops.empty() || ops.back() != op) ops.push_back(op);
    }
  }
  const StateTypes& types = state.types();
  const bool waits = std::ranges::any_of(makers, [&](const auto& made) {
    return staged_ && !taken_.contains({made.first.unit, made.first.microbatch});
  });
  sum_dtype_ = !staged_ ? types.gradients : waits ? types.reduced : types.made;
  // By unit and then by micro-batch: sums are met before what is added to them.
  for (const auto& [part, ops] : makers) follow(part, ops, items);
}

void GradientFlow::reductions(const StageProgram& program) {
  std::vector<bool> met(state_.units().units.size(), false);
  for (OpId op = 0; op < program.operations.size(); ++op) {
    const ProgramOp& each = program.operations[op];
    if (each.role != OpRole::copy_in && each.role != OpRole::reduce) continue;
    const std::size_t unit = unit_of(state_.units(), each);
    const UnitPass key = {unit, each.microbatch};
    // Whoever comes first takes the gradients: the copy into the reduction's input, or that.
    if (!taken_.contains(key)) taken_[key] = op;
    sources_[op] = kNoItem;
    if (each.role == OpRole::reduce) {
      joins_[op] = met[unit];
      met[unit] = true;
    }
  }
}

/// The buffer that the program has for a unit's gradients. Embedding and head take turns with one;
/// a table that both work with is in it from the head on, and what else such a head makes has a
/// buffer of its own.
ItemId GradientFlow::planned(std::size_t unit, const std::vector<OpId>& ops) {
  const StateUnit& own = state_.units().units[unit];
  const std::int64_t bytes = own.elements * bytes_of(sum_dtype_);
  const OpId last = ops.back();
  if (own.layer < 0 || program_.operations[last].layer != own.layer) return kNoItem;
  return buffers_.find(last, MemoryCategory::gradient_staging, bytes);
}

/// A unit that is one layer's is all of it, with what pads its end.
void GradientFlow::set_range(GradientTarget& target) const {
  const StateUnit& unit = state_.units().units[target.unit];
  target.count = unit.elements;
  if (unit.layer >= 0) return;
  target.begin = unit.elements;
  std::int64_t end = 0;
  for (const UnitTensor& tensor : unit.tensors) {
    if (tensor.layer != target.owner) continue;
    target.begin = std::min(target.begin, tensor.begin);
    end = std::max(end, tensor.begin + tensor.elements);
  }
  target.count = end - target.begin;
}

void GradientFlow::follow(const Part& part, const std::vector<OpId>& ops, MemoryItems& items) {
  const std::size_t unit = part.unit;
  const UnitPass pass = {unit, part.microbatch};
  const std::int64_t elements = state_.units().units[unit].elements;
  const DType made = state_.types().made;
  // The reduction that takes this micro-batch's gradients is the next one of the unit.
  auto taker = staged_ ? taken_.lower_bound(pass) : taken_.end();
  const bool held = staged_ && taker != taken_.end() && taker->first.first == unit;
  SHARDWISE_CHECK(held == staged_, "gradients that nobody reduces");
  const UnitPass window = held ? taker->first : UnitPass{unit, -1};
  if (!sums_.contains(window)) {
    ItemId sum = held ? planned(unit, ops) : kNoItem;
    if (held && sum == kNoItem) {
      sum = items.item(MemoryCategory::gradient_staging, elements * bytes_of(sum_dtype_));
    }
    sums_[window] = sum;
  }
  GradientTarget target;
  target.unit = unit;
  target.owner = part.owner;
  set_range(target);
  const bool first = begun_.insert({window, part.owner}).second;
  target.apart = !first || made != sum_dtype_;
  target.item = target.apart
                    ? items.item(MemoryCategory::gradient_staging, target.count * bytes_of(made))
                    : sums_[window];
  target.sum = sums_[window];
  for (const OpId op : ops) {
    GradientTarget here = target;
    here.zeroes = op == ops.front();
    here.adds = !first && op == ops.back();
    here.moves = first && target.apart && op == ops.back();
    targets_[op].push_back(here);
    if (target.item != kNoItem) items.touch(target.item, op);
    if ((here.adds || here.moves) && target.sum != kNoItem) items.touch(target.sum, op);
    if (!held && state_.late_gradients()) items.touch(state_.gradients_item(unit), op);
  }
  if (held) {
    items.touch(sums_[window], taker->second);
    sources_[taker->second] = sums_[window];
  }
}

}  // namespace shardwise::exec
