// Weights from shards to whole, and what the optimizer updated of them.
#include <utility>

#include "executor/engine/program_binder.h"

namespace shardwise::exec {

/// This rank's shard, to what travels.
void ProgramBinder::bind_cast(OpId op) {
  const std::size_t unit = unit_of(parts_.state->units(), program_.operations[op]);
  const std::int64_t bytes =
      parts_.state->shard(unit, Placement::shard_inner) * bytes_of(types().compute);
  ItemId shard = buffers_.find(op, MemoryCategory::gathered_weights, bytes);
  if (shard == kNoItem) shard = items_.item(MemoryCategory::gathered_weights, bytes);
  items_.touch(shard, op);
  cast_[unit] = shard;
  kernels_[op] = [this, unit, shard] {
    const Numbers own = view(unit).weights;
    copy_numbers({at(shard), own.count, types().compute}, own);
  };
}

void ProgramBinder::bind_gather_outer(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  kernels_[op] = [this, unit, group = group_of(each)] {
    const RankState::View own = view(unit);
    group->all_gather(own.updated, own.weights, parts_.state->shard(unit, Placement::shard_both));
  };
}

void ProgramBinder::bind_gather(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  const ItemId whole = unit_item(op, MemoryCategory::gathered_weights, unit, types().compute);
  const ItemId cast = std::exchange(cast_[unit], kNoItem);
  items_.touch(whole, op);
  gathered_[unit] = whole;
  if (parts_of_[unit] != kNoItem) {
    const ItemId part = std::exchange(parts_of_[unit], kNoItem);
    items_.touch(part, op);
    kernels_[op] = [this, unit, whole, part, group = group_of(each)] {
      group->all_gather(part_numbers(part, unit), unit_numbers(whole, unit, types().compute),
                        part_elements(unit));
    };
    return;
  }
  if (cast != kNoItem) items_.touch(cast, op);
  kernels_[op] = [this, unit, whole, cast, group = group_of(each)] {
    Numbers own = view(unit).weights;
    if (cast != kNoItem) own = {at(cast), own.count, types().compute};
    group->all_gather(own, unit_numbers(whole, unit, types().compute), shard(unit));
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

/// A rank's part of a unit in its smaller group: the shards of neighbours, the last may be short.
Numbers ProgramBinder::part_numbers(ItemId item, std::size_t unit) const {
  const Piece piece = piece_of(parts_.state->units().units[unit].elements, part_elements(unit),
                               parts_.state->place().shard_rank % part_ranks());
  return {at(item), static_cast<std::size_t>(piece.count), types().compute};
}

void ProgramBinder::bind_reshard(OpId op) {
  const std::size_t unit = unit_of(parts_.state->units(), program_.operations[op]);
  const ItemId whole = gathered_[unit];
  const std::int64_t bytes = part_elements(unit) * bytes_of(types().compute);
  ItemId part = buffers_.find(op, MemoryCategory::gathered_weights, bytes);
  if (part == kNoItem) part = items_.item(MemoryCategory::gathered_weights, bytes);
  items_.touch(whole, op);
  items_.touch(part, op);
  parts_of_[unit] = part;
  kernels_[op] = [this, unit, whole, part] {
    const Numbers kept = part_numbers(part, unit);
    const std::int64_t rank = parts_.state->place().shard_rank % part_ranks();
    const ConstNumbers all = unit_numbers(whole, unit, types().compute);
    copy_numbers(kept, all.part(static_cast<std::size_t>(rank * part_elements(unit)), kept.count));
  };
}

void ProgramBinder::bind_gather_updated(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  kernels_[op] = [this, unit, group = group_of(each)] {
    const RankState::View own = view(unit);
    group->all_gather(own.updated, own.weights, shard(unit));
  };
}

}  // namespace shardwise::exec
