#include "planner/lowering/checks/operand_microbatches.h"

#include <fmt/format.h>

namespace shardwise {
namespace {

enum class Held : std::uint8_t {
  none,  // the same for all micro-batches, or not what they are told by
  host,  // written by the host for one micro-batch
  pass,  // of one micro-batch
  made,  // gradients of one micro-batch, or of a sum that ends with it
  sum,   // gradients
};

Held held_in(OperandPart part) {
  using enum OperandPart;
  switch (part) {
    case inputs:
    case targets:
    case loss_scale:
    case loss:
      return Held::host;
    case stream:
    case saved:
    case layer_workspace:
    case fresh_gradients:
    case made_gradients:
      return Held::pass;
    case parameter_gradient:
      return Held::made;
    case joined_gradients:
    case gradient_sum:
    case gradients:
    case sent_gradients:
    case received_gradients:
      return Held::sum;
    default:
      return Held::none;
  }
}

}  // namespace

OperandMicrobatches::OperandMicrobatches(const ProgramOp& op, std::int32_t all)
    : all_(all),
      own_(op.role == OpRole::reduce_outer ? -1 : op.microbatch),
      alone_(op.role == OpRole::finalize) {}

/// Whether the operand adds what was read before it.
bool OperandMicrobatches::joins(const Operand& operand) const {
  return operand.access == Access::accumulate && !alone_ && !read_.none() && unit_ == operand.unit;
}

bool OperandMicrobatches::may_read(const Operand& operand, const Microbatches& held) const {
  const Held kind = held_in(operand.part);
  if (kind == Held::none || (kind == Held::host && held.none())) return true;
  if (kind == Held::made) return held.last == own_;
  if (kind != Held::sum) return held == Microbatches{own_, own_};
  if (operand.part == OperandPart::joined_gradients) {
    return !held.none() && held.last + 1 == own_;
  }
  if (joins(operand)) return !held.none() && held.last + 1 == read_.first;
  if (own_ < 0) return held == Microbatches{0, all_ - 1};
  return held.last == own_;
}

std::string OperandMicrobatches::wanted(const Operand& operand) const {
  const Held kind = held_in(operand.part);
  if (kind == Held::made) return fmt::format("those up to {}", own_);
  if (kind != Held::sum) return fmt::format("micro-batch {}", own_);
  if (operand.part == OperandPart::joined_gradients) {
    return fmt::format("those up to {}", own_ - 1);
  }
  if (joins(operand)) return fmt::format("those up to {}", read_.first - 1);
  if (own_ < 0) return text_of({0, all_ - 1});
  return fmt::format("those up to {}", own_);
}

Microbatches OperandMicrobatches::after(const Operand& operand, const Microbatches& held) {
  const Held kind = held_in(operand.part);
  if (kind == Held::none) return {};
  if (kind == Held::made || operand.part == OperandPart::joined_gradients) {
    return {held.first, own_};
  }
  if (kind == Held::sum || operand.part == OperandPart::made_gradients) {
    if (joins(operand)) return {held.first, read_.last};
    if (operand.access == Access::output) return read_;
    read_ = held;
    unit_ = operand.unit;
    return held;
  }
  return {own_, own_};
}

bool is_of_one_layer(OperandPart part) {
  return part == OperandPart::saved || part == OperandPart::layer_workspace;
}

std::string text_of(const Microbatches& held) {
  if (held.none()) return "no micro-batch";
  if (held.first == held.last) return fmt::format("micro-batch {}", held.first);
  return fmt::format("micro-batches {} to {}", held.first, held.last);
}

}  // namespace shardwise
