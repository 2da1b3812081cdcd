#include "executor/engine/program_binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "planner/lowering/finish_step.h"
#include "planner/spec/check.h"

namespace shardwise::exec {
namespace {

/// The residents come first, in the same order in every program.
MemoryItems residents(RankState& state) {
  MemoryItems items;
  state.add_items(items);
  return items;
}

const ModelSpec& model_of(const RankParts& parts) { return parts.context->plan->model; }

}  // namespace

bool has_kernel(const StageProgram& program, const ProgramOp& op) {
  const OpCost& cost = program.costs[static_cast<std::size_t>(op.cost)];
  const auto moves_by = [&](std::initializer_list<CollectiveKind> kinds) {
    return std::ranges::find(kinds, cost.collectives.front().kind) != kinds.end();
  };
  switch (op.role) {
    case OpRole::forward:
    case OpRole::backward:
    case OpRole::recompute:
      return !cost.layers.empty();
    case OpRole::cast:
    case OpRole::gather:
    case OpRole::gather_outer:
    case OpRole::copy_in:
    case OpRole::copy_out:
    case OpRole::reshard:
    case OpRole::sum:
    case OpRole::accumulate:
    case OpRole::gather_updated:
    case OpRole::gradient_norm:
    case OpRole::optimizer:
      return true;
    case OpRole::reduce:
      return moves_by(
          {CollectiveKind::reduce_scatter, CollectiveKind::all_reduce, CollectiveKind::all_to_all});
    case OpRole::reduce_outer:
      return moves_by({CollectiveKind::reduce_scatter, CollectiveKind::all_reduce});
    case OpRole::finalize:
      return op.part == FinalizePart::kTokens || op.part == FinalizePart::kScale;
    default:
      return false;
  }
}

ProgramBinder::ProgramBinder(RankParts& parts, const StageProgram& program, std::size_t number)
    : parts_(parts),
      program_(program),
      number_(number),
      items_(residents(*parts.state)),
      buffers_(program, items_),
      flow_(program, model_of(parts), *parts.state, items_, buffers_),
      gathered_(parts.state->units().units.size(), kNoItem),
      cast_(gathered_.size(), kNoItem),
      parts_of_(gathered_.size(), kNoItem),
      copied_(gathered_.size(), kNoItem),
      received_(gathered_.size()),
      streams_(static_cast<std::size_t>(parts.context->num_microbatches), kNoItem),
      saved_(
          model_of(parts).layers.size(),
          std::vector<ItemId>(static_cast<std::size_t>(parts.context->num_microbatches), kNoItem)) {
  std::int64_t tables = 0;
  for (const auto& layer : parts.layers) tables = std::max(tables, layer->bytes().tables);
  tables_ = items_.item(MemoryCategory::activations, tables);
  has_norm_ = std::ranges::any_of(
      program.operations, [](const ProgramOp& op) { return op.role == OpRole::gradient_norm; });
  kernels_.resize(program.operations.size());
  for (OpId op = 0; op < program.operations.size(); ++op) {
    for (const std::uint32_t b : program.of(program.operations[op].allocates)) {
      const ProgramBuffer& buffer = program.buffers[b];
      if (buffer.outlives) items_.begin_residents(buffer.category, op);
    }
    bind(op);
  }
}

void ProgramBinder::bind(OpId op) {
  SHARDWISE_CHECK(has_kernel(program_, program_.operations[op]),
                  name_of(program_, program_.operations[op]));
  switch (program_.operations[op].role) {
    case OpRole::forward:
    case OpRole::recompute:
    case OpRole::backward:
      bind_pass(op);
      return;
    case OpRole::cast:
      bind_cast(op);
      return;
    case OpRole::gather_outer:
      bind_gather_outer(op);
      return;
    case OpRole::gather:
      bind_gather(op);
      return;
    case OpRole::copy_out:
      bind_copy_out(op);
      return;
    case OpRole::reshard:
      bind_reshard(op);
      return;
    case OpRole::copy_in:
      bind_copy_in(op);
      return;
    case OpRole::reduce:
      bind_reduce(op);
      return;
    case OpRole::sum:
      bind_sum(op);
      return;
    case OpRole::reduce_outer:
      bind_reduce_outer(op);
      return;
    case OpRole::gather_updated:
      bind_gather_updated(op);
      return;
    case OpRole::finalize:
      bind_finalize(op);
      return;
    case OpRole::gradient_norm:
      bind_norm(op);
      return;
    case OpRole::optimizer:
      bind_optimizer(op);
      return;
    case OpRole::accumulate:  // the reduction began its fold with what was there
      kernels_[op] = [] {};
      return;
    default:
      return;  // has_kernel() has no other
  }
}

const Layer& ProgramBinder::layer_of(const ProgramOp& op) const {
  const int kind = model_of(parts_).layers[static_cast<std::size_t>(op.layer)];
  return *parts_.layers[static_cast<std::size_t>(kind)];
}

ItemId ProgramBinder::unit_item(OpId op, MemoryCategory category, std::size_t unit, DType dtype) {
  const std::int64_t bytes = parts_.state->units().units[unit].elements * bytes_of(dtype);
  const ItemId planned = buffers_.find(op, category, bytes);
  return planned != kNoItem ? planned : items_.item(category, bytes);
}

Numbers ProgramBinder::unit_numbers(ItemId item, std::size_t unit, DType dtype) const {
  const std::int64_t elements = parts_.state->units().units[unit].elements;
  return {at(item), static_cast<std::size_t>(elements), dtype};
}

void ProgramBinder::touch_gradients(std::size_t unit, OpId op) {
  if (parts_.state->late_gradients()) items_.touch(parts_.state->gradients_item(unit), op);
}

const std::byte* ProgramBinder::weights_at(const Where& where) const {
  const std::int64_t begin = parts_.state->units().tensor(where.place).begin;
  const std::byte* const base =
      where.item == kNoItem ? view(where.place.unit).weights.data : at(where.item);
  return base + begin * bytes_of(types().compute);
}

std::byte* ProgramBinder::gradients_at(const Where& where) const {
  const std::int64_t begin = parts_.state->units().tensor(where.place).begin - where.begin;
  std::byte* const base =
      where.item == kNoItem ? view(where.place.unit).gradients.data : at(where.item);
  return base + begin * bytes_of(types().made);
}

/// Where a pass finds the weights of a unit; kNoItem: in the rank's own.
ItemId ProgramBinder::weights_item(OpId op, std::size_t unit, PassItems& pass) {
  if (gathered_[unit] != kNoItem) {
    items_.touch(gathered_[unit], op);
    return gathered_[unit];
  }
  if (types().weights == types().compute) return kNoItem;
  const auto made = std::ranges::find(pass.casts, unit, &Cast::unit);
  if (made != pass.casts.end()) return made->item;
  const std::int64_t elements = parts_.state->units().units[unit].elements;
  const ItemId item =
      items_.item(MemoryCategory::gathered_weights, elements * bytes_of(types().compute));
  items_.touch(item, op);
  pass.casts.push_back({unit, item});
  return item;
}

ProgramBinder::PassItems ProgramBinder::pass_items(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const bool forward = each.role == OpRole::forward;
  const LayerBytes bytes = layer_of(each).bytes();
  const auto mb = static_cast<std::size_t>(each.microbatch);
  PassItems pass;
  for (const TensorPlace& place :
       parameters_of(model_of(parts_), parts_.state->units(), each.layer)) {
    pass.weights.push_back({weights_item(op, place.unit, pass), place});
  }
  if (each.role == OpRole::backward) {
    pass.targets = flow_.of(op);
    for (const Where& weights : pass.weights) {
      const std::int32_t owner = parts_.state->units().tensor(weights.place).layer;
      const auto target = std::ranges::find_if(pass.targets, [&](const GradientTarget& made) {
        return made.unit == weights.place.unit && made.owner == owner;
      });
      pass.gradients.push_back(
          {target->item, weights.place, target->apart ? target->begin : std::int64_t{0}});
    }
  }
  ItemId& saved = saved_[static_cast<std::size_t>(each.layer)][mb];
  if (saved == kNoItem) saved = items_.item(MemoryCategory::activations, bytes.saved);
  ItemId& stream = streams_[mb];
  if (stream == kNoItem) {
    const Layout& layout = parts_.context->layout();
    const std::int64_t tokens = layout.micro_batch_size * parts_.context->job().sequence_length;
    stream = items_.item(MemoryCategory::working,
                         tokens * model_of(parts_).hidden_size * bytes_of(types().compute));
  }
  const int kind = model_of(parts_).layers[static_cast<std::size_t>(each.layer)];
  const LayerRole role = model_of(parts_).kinds[static_cast<std::size_t>(kind)].role;
  const bool again = each.role == OpRole::recompute;
  const bool ready = each.role == OpRole::backward && recomputed_ != kNoItem;
  pass.workspace = ready
                       ? std::exchange(recomputed_, kNoItem)
                       : items_.item(again                     ? MemoryCategory::recompute_scratch
                                     : role == LayerRole::head ? MemoryCategory::logits_and_loss
                                                               : MemoryCategory::working,
                                     forward ? bytes.forward_workspace : bytes.backward_workspace);
  if (again) recomputed_ = pass.workspace;
  pass.saved = saved;
  pass.stream = stream;
  for (const ItemId item : {pass.workspace, saved, stream, tables_}) items_.touch(item, op);
  const ArenaItem& tables = items_.all()[tables_].life;  // of no bytes where no layer has any
  pass.makes_tables = tables.bytes > 0 && tables.first == op;
  return pass;
}

void ProgramBinder::bind_pass(OpId op) {
  const ProgramOp& each = program_.operations[op];
  PassItems pass = pass_items(op);
  if (each.role == OpRole::forward) {
    kernels_[op] = [this, each, pass = std::move(pass)] { run_forward(each, pass); };
  } else if (each.role == OpRole::recompute) {
    kernels_[op] = [this, each, pass = std::move(pass)] { run_recompute(each, pass); };
  } else {
    kernels_[op] = [this, each, pass = std::move(pass)] { run_backward(each, pass); };
  }
}

void ProgramBinder::cast_weights(const PassItems& items) const {
  for (const Cast& cast : items.casts) {
    copy_numbers(unit_numbers(cast.item, cast.unit, types().compute), view(cast.unit).weights);
  }
}

void ProgramBinder::run_forward(const ProgramOp& op, const PassItems& items) {
  if (items.makes_tables) parts_.fill_tables(at(tables_));
  cast_weights(items);
  std::vector<const std::byte*> weights;
  for (const Where& where : items.weights) weights.push_back(weights_at(where));
  ForwardPass pass;
  pass.weights = weights;
  pass.stream = at(items.stream);
  pass.inputs = parts_.step.inputs[static_cast<std::size_t>(op.microbatch)].data();
  pass.saved = at(items.saved);
  pass.workspace = at(items.workspace);
  pass.tables = at(tables_);
  layer_of(op).forward(pass, *parts_.workers);
}

void ProgramBinder::run_recompute(const ProgramOp& op, const PassItems& items) {
  cast_weights(items);
  std::vector<const std::byte*> weights;
  for (const Where& where : items.weights) weights.push_back(weights_at(where));
  BackwardPass pass;
  pass.weights = weights;
  pass.saved = at(items.saved);
  pass.workspace = at(items.workspace);
  pass.tables = at(tables_);
  layer_of(op).recompute(pass, *parts_.workers);
}

/// Zeros before the first operation that makes gradients of a unit in a micro-batch; after the last
/// they join those of earlier micro-batches.
void ProgramBinder::settle_gradients(const PassItems& items, bool before) {
  for (const GradientTarget& target : items.targets) {
    const auto begin = static_cast<std::size_t>(target.begin);
    const auto count = static_cast<std::size_t>(target.count);
    const Numbers whole = target.sum == kNoItem
                              ? view(target.unit).gradients
                              : unit_numbers(target.sum, target.unit, flow_.sum_dtype());
    const Numbers sum = whole.part(begin, count);
    const Numbers made = target.apart ? Numbers(at(target.item), count, types().made) : sum;
    if (before && target.zeroes) clear(made);
    if (!before && target.adds) add_to(sum, made);
    if (!before && target.moves) copy_numbers(sum, made);
  }
}

void ProgramBinder::run_backward(const ProgramOp& op, const PassItems& items) {
  const auto mb = static_cast<std::size_t>(op.microbatch);
  settle_gradients(items, true);
  cast_weights(items);
  std::vector<const std::byte*> weights;
  std::vector<std::byte*> gradients;
  for (const Where& where : items.weights) weights.push_back(weights_at(where));
  for (const Where& where : items.gradients) gradients.push_back(gradients_at(where));
  BackwardPass pass;
  pass.weights = weights;
  pass.gradients = gradients;
  pass.stream = at(items.stream);
  pass.saved = at(items.saved);
  pass.workspace = at(items.workspace);
  pass.tables = at(tables_);
  pass.targets = parts_.step.targets[mb].data();
  pass.loss_scale = parts_.step.loss_scales[mb];
  pass.loss = &parts_.step.losses[mb];
  layer_of(op).backward(pass, *parts_.workers);
  if (!std::isfinite(pass.loss->loss)) {
    throw std::runtime_error(fmt::format(
        "the loss of step {} is not a number; a lower learning rate may help", parts_.step.step));
  }
  settle_gradients(items, false);
}

}  // namespace shardwise::exec
