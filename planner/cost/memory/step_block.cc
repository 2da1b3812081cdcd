#include "planner/cost/memory/step_block.h"

namespace shardwise {
namespace {

constexpr std::int64_t kAlignment = 128;
constexpr std::int64_t kNumber = 8;  // bytes of an int64 or fp64

}  // namespace

StepBlock step_block(const StepBlockShape& shape) {
  StepBlock block;
  const auto place = [&](std::int64_t bytes) {
    const StepRange range = {block.bytes, bytes};
    block.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return range;
  };
  block.losses = place(shape.microbatches * 2 * kNumber);
  block.gradient_norm = place(kNumber);
  block.gradient_check = place(4 * kNumber);
  block.downloaded = block.gradient_check.end();
  block.adam_step = place(5 * kNumber);
  block.loss_scales = place(shape.microbatches * 4);
  block.own_tokens = place(kNumber);
  block.inputs = place(shape.microbatches * shape.tokens * kNumber);
  block.targets = place(shape.microbatches * shape.tokens * kNumber);
  block.uploaded = block.targets.end();
  block.token_factor = place(4);
  block.all_tokens = place(shape.token_counts > 1 ? shape.token_counts * kNumber : 0);
  block.own_squares = place(kSquaresBytes);
  block.all_squares = place(shape.ranks > 1 ? shape.ranks * kSquaresBytes : 0);
  return block;
}

StepBlockShape step_block_shape(const Layout& layout, std::int64_t num_microbatches,
                                std::int64_t sequence_length, bool per_token_loss) {
  return {num_microbatches, layout.micro_batch_size * sequence_length / layout.cp, layout.world(),
          per_token_loss ? layout.dp() * layout.cp : 1};
}

}  // namespace shardwise
