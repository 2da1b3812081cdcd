// Gradients from what this rank made to what it keeps of the sum over ranks.
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
  return parts_.world->group(ranks, op.stream);
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

ProgramBinder::Reduced ProgramBinder::reduced_by(OpId op) {
  const ProgramOp& each = program_.operations[op];
  Reduced reduced;
  reduced.unit = unit_of(parts_.state->units(), each);
  reduced.source = flow_.source(op);
  DType dtype = flow_.sum_dtype();
  if (copied_[reduced.unit] != kNoItem) {
    reduced.source = std::exchange(copied_[reduced.unit], kNoItem);
    dtype = types().reduced;
  }
  SHARDWISE_CHECK(reduced.source == kNoItem || dtype == types().reduced, name_of(program_, each));
  if (reduced.source != kNoItem) items_.touch(reduced.source, op);
  reduced.joins = reduced.source != kNoItem && flow_.joins_earlier(op);
  return reduced;
}

/// This rank's gradients, before they are summed with those of others.
Numbers ProgramBinder::read_by(const Reduced& reduced) {
  const Numbers all = reduced.source == kNoItem
                          ? view(reduced.unit).gradients
                          : unit_numbers(reduced.source, reduced.unit, types().reduced);
  parts_.checks.check(parts_.step.step, reduced.unit, all);
  return all;
}

void ProgramBinder::bind_reduce(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const Reduced reduced = reduced_by(op);
  const std::size_t unit = reduced.unit;
  touch_gradients(unit, op);
  auto group = group_of(each);
  switch (program_.costs[static_cast<std::size_t>(each.cost)].collectives.front().kind) {
    case CollectiveKind::all_reduce:
      kernels_[op] = [this, reduced, group] { sum_over(*group, read_by(reduced)); };
      return;
    case CollectiveKind::all_to_all: {
      const std::int64_t elements = shard(unit) * group->size();
      const std::int64_t bytes = elements * bytes_of(types().reduced);
      ItemId received = buffers_.find_last(op, MemoryCategory::gradient_staging, bytes);
      if (received == kNoItem) received = items_.item(MemoryCategory::gradient_staging, bytes);
      items_.touch(received, op);
      received_[unit] = {received, reduced.joins};
      kernels_[op] = [this, reduced, received, elements, group] {
        const Numbers into(at(received), static_cast<std::size_t>(elements), types().reduced);
        group->all_to_all(read_by(reduced), into, shard(reduced.unit));
      };
      return;
    }
    default:
      kernels_[op] = [this, reduced, group] {
        const Numbers mine = view(reduced.unit).reduced;
        group->reduce_scatter(read_by(reduced), mine, shard(reduced.unit), reduced.joins);
      };
  }
}

/// What an all-to-all brought is summed in fp32, in the order of ranks, and rounded once, when it
/// becomes the shard or joins it.
void ProgramBinder::bind_sum(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  const ItemId received = received_[unit].item;
  const std::int64_t bytes = shard(unit) * bytes_of(DType::fp32);
  ItemId sums = buffers_.find_last(op, MemoryCategory::gradient_staging, bytes);
  if (sums == kNoItem) sums = items_.item(MemoryCategory::gradient_staging, bytes);
  items_.touch(received, op);
  items_.touch(sums, op);
  touch_gradients(unit, op);
  const bool joins = received_[unit].joins;
  kernels_[op] = [this, unit, received, sums, joins] {
    const Numbers shard_of_rank = view(unit).reduced;
    const std::size_t count = shard_of_rank.count;
    const Numbers sum(at(sums), count, DType::fp32);
    const auto from = [&](std::int64_t rank) -> ConstNumbers {
      const std::int64_t begin = rank * shard(unit) * bytes_of(types().reduced);
      return {at(received) + begin, count, types().reduced};
    };
    copy_numbers(sum, from(0));
    for (std::int64_t r = 1; r < parts_.state->place().shard_ranks; ++r) add_to(sum, from(r));
    if (joins) {
      add_to(shard_of_rank, sum);
    } else {
      copy_numbers(shard_of_rank, sum);
    }
  };
}

void ProgramBinder::bind_reduce_outer(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  touch_gradients(unit, op);
  const bool scatters =
      program_.costs[static_cast<std::size_t>(each.cost)].collectives.front().kind ==
      CollectiveKind::reduce_scatter;
  kernels_[op] = [this, unit, scatters, group = group_of(each)] {
    const RankState::View own = view(unit);
    if (scatters) {
      const std::int64_t piece = parts_.state->shard(unit, Placement::shard_both);
      group->reduce_scatter(own.reduced, own.updated_gradient, piece, false);
    } else {
      sum_over(*group, own.updated_gradient);
    }
  };
}

}  // namespace shardwise::exec
