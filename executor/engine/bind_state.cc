// The operations that move, sum and update states: the change of placement that the plan asks for.
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "executor/engine/program_binder.h"
#include "planner/spec/check.h"

namespace shardwise::exec {

std::shared_ptr<Communicator> ProgramBinder::group_of(const ProgramOp& op) {
  const std::vector<CollectiveWork>& work =
      program_.costs[static_cast<std::size_t>(op.cost)].collectives;
  SHARDWISE_CHECK(work.size() == 1, name_of(program_, op));
  const std::vector<std::int64_t> ranks =
      group_ranks(parts_.context->layout(), work.front().group, parts_.world->rank());
  return parts_.world->group(ranks, static_cast<int>(op.stream));
}

/// This rank's shard, to what travels.
void ProgramBinder::bind_cast(OpId op) {
  const std::size_t unit = unit_of(parts_.state->units(), program_.operations[op]);
  const std::int64_t bytes = parts_.state->shard(unit) * bytes_of(types().compute);
  ItemId shard = buffers_.find(op, MemoryCategory::gathered_weights, bytes);
  if (shard == kNoItem) shard = items_.item(MemoryCategory::gathered_weights, bytes);
  items_.touch(shard, op);
  cast_[unit] = shard;
  kernels_[op] = [this, unit, shard] {
    const Numbers own = view(unit).weights;
    copy_numbers({at(shard), own.count, types().compute}, own);
  };
}

void ProgramBinder::bind_gather(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  const ItemId whole = unit_item(op, MemoryCategory::gathered_weights, unit, types().compute);
  const ItemId shard = std::exchange(cast_[unit], kNoItem);
  items_.touch(whole, op);
  if (shard != kNoItem) items_.touch(shard, op);
  gathered_[unit] = whole;
  kernels_[op] = [this, unit, whole, shard, group = group_of(each)] {
    Numbers own = view(unit).weights;
    if (shard != kNoItem) own = {at(shard), own.count, types().compute};
    group->all_gather(own, unit_numbers(whole, unit, types().compute), parts_.state->shard(unit));
  };
}

void ProgramBinder::bind_copy_out(OpId op) {
  const std::size_t unit = unit_of(parts_.state->units(), program_.operations[op]);
  const DType dtype = types().compute;
  const ItemId output = gathered_[unit];
  const ItemId whole = unit_item(op, MemoryCategory::gathered_weights, unit, dtype);
  items_.touch(output, op);
  items_.touch(whole, op);
  gathered_[unit] = whole;
  kernels_[op] = [this, unit, output, whole, dtype] {
    copy_numbers(unit_numbers(whole, unit, dtype), unit_numbers(output, unit, dtype));
  };
}

void ProgramBinder::bind_copy_in(OpId op) {
  const std::size_t unit = unit_of(parts_.state->units(), program_.operations[op]);
  const ItemId made = flow_.source(op);
  const ItemId input = unit_item(op, MemoryCategory::gradient_staging, unit, types().reduced);
  items_.touch(input, op);
  copied_[unit] = input;
  kernels_[op] = [this, unit, made, input] {
    copy_numbers(unit_numbers(input, unit, types().reduced),
                 unit_numbers(made, unit, flow_.sum_dtype()));
  };
}

/// Sums what a rank keeps over a group, in the type in which it travels: narrowed where it is, and
/// widened again.
void ProgramBinder::sum_over(Communicator& group, const Numbers& kept) const {
  const Numbers sent = {kept.data, kept.count, types().reduced};
  copy_numbers(sent, kept);
  group.all_reduce(sent);
  copy_numbers(kept, sent);
}

void ProgramBinder::bind_reduce(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  touch_gradients(unit, op);
  const CollectiveKind kind =
      program_.costs[static_cast<std::size_t>(each.cost)].collectives.front().kind;
  if (kind == CollectiveKind::all_reduce) {
    kernels_[op] = [this, unit, group = group_of(each)] { sum_over(*group, view(unit).gradients); };
    return;
  }
  ItemId source = flow_.source(op);
  DType dtype = flow_.sum_dtype();
  if (copied_[unit] != kNoItem) {
    source = std::exchange(copied_[unit], kNoItem);
    dtype = types().reduced;
  }
  SHARDWISE_CHECK(dtype == types().reduced, name_of(program_, each));
  if (source != kNoItem) items_.touch(source, op);
  const bool joins = source != kNoItem && flow_.joins_earlier(op);
  kernels_[op] = [this, unit, source, joins, group = group_of(each)] {
    const RankState::View own = view(unit);
    const Numbers all =
        source == kNoItem ? own.gradients : unit_numbers(source, unit, types().reduced);
    group->reduce_scatter(all, own.updated_gradient, parts_.state->shard(unit), joins);
  };
}

void ProgramBinder::bind_reduce_outer(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  touch_gradients(unit, op);
  kernels_[op] = [this, unit, group = group_of(each)] {
    sum_over(*group, view(unit).updated_gradient);
  };
}

void ProgramBinder::bind_gather_updated(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  kernels_[op] = [this, unit, group = group_of(each)] {
    const RankState::View own = view(unit);
    group->all_gather(own.updated, own.weights, parts_.state->shard(unit));
  };
}

void ProgramBinder::bind_norm(OpId op) {
  for (std::size_t u = 0; u < gathered_.size(); ++u) touch_gradients(u, op);
  kernels_[op] = [this, group = group_of(program_.operations[op])] {
    const ExactSquares own = parts_.state->squares(*parts_.arena, number_);
    std::vector<std::byte> all(ExactSquares::kBytes * static_cast<std::size_t>(group->size()));
    group->exchange(own.bytes(), all);
    ExactSquares sum;
    for (std::size_t at = 0; at < all.size(); at += ExactSquares::kBytes) {
      sum.add(ExactSquares::from_bytes(
          std::span<const std::byte, ExactSquares::kBytes>(&all[at], ExactSquares::kBytes)));
    }
    parts_.step.gradient_norm = sum.norm();
  };
}

void ProgramBinder::bind_optimizer(OpId op) {
  for (std::size_t u = 0; u < gathered_.size(); ++u) touch_gradients(u, op);
  const std::int64_t cast_elements = types().casts_gradients ? parts_.state->updated_elements() : 0;
  const ItemId casts =
      items_.item(MemoryCategory::main_gradients, cast_elements * bytes_of(DType::fp32));
  items_.touch(casts, op);
  kernels_[op] = [this, casts, cast_elements] {
    StepState& step = parts_.step;
    if (!has_norm_) {
      step.gradient_norm = parts_.state->squares(*parts_.arena, number_).norm();
    }
    if (!std::isfinite(step.gradient_norm)) {
      throw std::runtime_error(fmt::format(
          "the gradient of step {} is not a number; a lower learning rate may help", step.step));
    }
    const AdamStep adam = adam_step(parts_.optimizer, step.step, step.gradient_norm);
    const Numbers place(at(casts), static_cast<std::size_t>(cast_elements), DType::fp32);
    parts_.state->update(*parts_.arena, number_, adam, parts_.optimizer, place.floats());
  };
}

}  // namespace shardwise::exec
