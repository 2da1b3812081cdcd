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
  if (cast != kNoItem) items_.touch(cast, op);
  gathered_[unit] = whole;
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

void ProgramBinder::bind_gather_updated(OpId op) {
  const ProgramOp& each = program_.operations[op];
  const std::size_t unit = unit_of(parts_.state->units(), each);
  kernels_[op] = [this, unit, group = group_of(each)] {
    const RankState::View own = view(unit);
    group->all_gather(own.updated, own.weights, shard(unit));
  };
}

}  // namespace shardwise::exec
