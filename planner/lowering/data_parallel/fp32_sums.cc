#include "planner/lowering/data_parallel/fp32_sums.h"

#include <utility>

namespace shardwise {

Fp32Sums::Fp32Sums(const LoweringContext& context, StageBuilder& builder, ArenaSlots& slots)
    : context_(context), builder_(builder), slots_(slots) {
  at_once_ = context.engine().gradient_buffer != GradientBuffer::contiguous;
  stream_ = at_once_ ? Stream::reduce_scatter : Stream::compute;
}

OpId Fp32Sums::reduce(ProgramOp op, const UnitCosts::Group& costs, std::int64_t padded,
                      OperationLists lists) {
  op.cost = costs.reduce;
  if (costs.sum < 0) {
    return builder_.add(op, lists.waits, lists.allocates, lists.frees, lists.uses);
  }
  lists.waits.push_back(drain());
  uses_ = lists.uses;
  if (slots_.on()) {
    received_ = slots_.received();
    lists.waits.push_back(slots_.last(received_));
    lists.uses.push_back(received_);
  } else {
    const std::int64_t ranks = op.routed ? context_.shards.routed : context_.shards.dense;
    received_ = builder_.buffer(MemoryCategory::gradient_staging, padded * kNarrowGradientBytes,
                                op.layer, op.microbatch);
    lists.allocates.push_back(received_);
    sums_bytes_ = padded / ranks * kFp32GradientBytes;
  }
  arrived_ = builder_.add(op, lists.waits, lists.allocates, lists.frees, lists.uses);
  builder_.lies_in(arrived_, OperandPart::received_gradients, received_);
  due_ = op;
  due_.role = OpRole::sum;
  due_.stream = stream_;
  due_.cost = costs.sum;
  return at_once_ ? drain() : arrived_;
}

OpId Fp32Sums::drain() {
  if (arrived_ == kNone) return kNone;
  const OpId arrived = std::exchange(arrived_, kNone);
  if (slots_.on()) {
    uses_.push_back(received_);
    uses_.push_back(slots_.sums());
    const OpId summed = builder_.add(due_, std::vector{arrived}, {}, {}, uses_);
    builder_.lies_in(summed, OperandPart::shard_sum, slots_.sums());
    slots_.touch(received_, summed);
    slots_.touch(slots_.sums(), summed);
    return summed;
  }
  const BufferId sums =
      builder_.buffer(MemoryCategory::gradient_staging, sums_bytes_, due_.layer, due_.microbatch);
  const OpId summed = builder_.add(due_, {arrived}, {sums}, {sums, received_});
  builder_.lies_in(summed, OperandPart::shard_sum, sums);
  return summed;
}

}  // namespace shardwise
