// The end of a step: gradients become final, and weights are updated.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "executor/engine/program_binder.h"
#include "planner/lowering/finish_step.h"

namespace shardwise::exec {

/// Per-token loss: the tokens of all ranks that count, and gradients divided by them.
void ProgramBinder::bind_finalize(OpId op) {
  const ProgramOp& each = program_.operations[op];
  if (each.part == FinalizePart::kTokens) {
    kernels_[op] = [this, group = group_of(each)] {
      std::vector<std::int64_t> all(static_cast<std::size_t>(group->size()));
      std::int64_t& counted = parts_.step.counted_tokens;
      group->exchange(std::as_bytes(std::span(&counted, 1)),
                      std::as_writable_bytes(std::span(all)));
      counted = std::accumulate(all.begin(), all.end(), std::int64_t{0});
    };
    return;
  }
  for (std::size_t u = 0; u < gathered_.size(); ++u) touch_gradients(u, op);
  kernels_[op] = [this] {
    const auto tokens = static_cast<float>(std::max<std::int64_t>(1, parts_.step.counted_tokens));
    for (std::size_t u = 0; u < gathered_.size(); ++u) scale(view(u).updated_gradient, 1 / tokens);
  };
}

void ProgramBinder::bind_norm(OpId op) {
  for (std::size_t u = 0; u < gathered_.size(); ++u) touch_gradients(u, op);
  const auto own = std::make_shared<ExactSquares>();
  kernels_[op] = [this, own, group = group_of(program_.operations[op])] {
    std::vector<std::byte> all(ExactSquares::kBytes * static_cast<std::size_t>(group->size()));
    group->exchange(own->bytes(), all);
    ExactSquares sum;
    for (std::size_t at = 0; at < all.size(); at += ExactSquares::kBytes) {
      sum.add(ExactSquares::from_bytes(
          std::span<const std::byte, ExactSquares::kBytes>(&all[at], ExactSquares::kBytes)));
    }
    parts_.step.gradient_norm = sum.norm();
  };
  kernels_[op].prepare = [this, own] {
    *own = parts_.state->squares(*parts_.arena, number_, *parts_.workers);
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
    // Where nothing was reduced nobody has looked at them.
    for (std::size_t u = 0; u < gathered_.size() && parts_.state->place().shard_ranks == 1; ++u) {
      parts_.checks.check(step.step, u, view(u).gradients);
    }
    if (!has_norm_) {
      step.gradient_norm = parts_.state->squares(*parts_.arena, number_, *parts_.workers).norm();
    }
    if (!std::isfinite(step.gradient_norm)) {
      throw std::runtime_error(fmt::format(
          "the gradient of step {} is not a number; a lower learning rate may help", step.step));
    }
    const AdamStep adam = adam_step(parts_.optimizer, step.step, step.gradient_norm);
    const Numbers place(at(casts), static_cast<std::size_t>(cast_elements), DType::fp32);
    parts_.state->update(*parts_.arena, number_, adam, parts_.optimizer, place.floats(),
                         *parts_.workers);
  };
}

}  // namespace shardwise::exec
