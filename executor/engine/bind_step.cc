// The end of a step: gradients become final, and weights are updated.
#include "executor/engine/program_binder.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/engine/rank_place.h"
#include "planner/lowering/operands/table_shards.h"

namespace shardwise::exec {

/// Per-token loss: the last stage sends the others the tokens of its targets that count. Their
/// bytes move as words.
OpKernel ProgramBinder::hand_on_tokens(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool sends = operands[0].access == Access::input;
  return [this, operands, sends, group = group_of(op)](DeviceStream& stream) {
    const std::span<std::byte> tokens = bytes(operands, OperandPart::own_tokens);
    const TensorView words(tokens.data(), tokens.size() / sizeof(float), DType::fp32);
    const int last = group->size() - 1;
    std::vector<Message> messages;
    for (int stage = 0; sends && stage < last; ++stage) {
      messages.emplace_back();
      messages.back().peer = stage;
      messages.back().sent = words;
    }
    if (!sends) {
      messages.emplace_back();
      messages.back().peer = last;
      messages.back().received = words;
    }
    group->send_receive(messages, stream);
  };
}

/// The tokens of all ranks that count …
OpKernel ProgramBinder::count_tokens(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, operands, group = group_of(op)](DeviceStream& stream) {
    all_gather_bytes(*group, bytes(operands, OperandPart::own_tokens),
                     bytes(operands, OperandPart::all_tokens), stream);
  };
}

/// … and gradients divided by them.
OpKernel ProgramBinder::scale_gradients(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool alone = !has(operands, OperandPart::all_tokens);
  const OperandPart counted = alone ? OperandPart::own_tokens : OperandPart::all_tokens;
  return [this, operands, counted](DeviceStream& stream) {
    const std::span<std::byte> tokens = bytes(operands, counted);
    float* const factor = step_at<float>(operands, OperandPart::token_factor);
    parts_.compute->token_factor(
        {.tokens = reinterpret_cast<const std::int64_t*>(tokens.data()),
         .ranks = static_cast<std::int64_t>(tokens.size() / sizeof(std::int64_t)),
         .factor = factor},
        stream);
    for (const TensorView& each : all(operands, OperandPart::gradients)) {
      parts_.compute->scale({.tensor = each, .factor = factor}, stream);
    }
  };
}

/// A table that embedding and head have on two stages: both get the sum of what they made. Ranks
/// that have parts of it hand each other what these have in common.
OpKernel ProgramBinder::sum_table(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const Layout& layout = parts_.context->layout();
  if (cuts_table(layout)) {
    return [this, operands, common = common_table_parts(),
            group = group_of(op)](DeviceStream& stream) {
      std::vector<Message> messages;
      for (const TablePart& each : common) {
        messages.push_back({each.peer, numbers(operands[0]).part(each.begin, each.count),
                            numbers(operands[1]).part(each.begin, each.count)});
      }
      group->send_receive(messages, stream);
      if (common.empty()) return;
      parts_.compute->accumulate(numbers(operands[0]), numbers(operands[1]), stream);
    };
  }
  return [this, operands, group = group_of(op)](DeviceStream& stream) {
    group->all_reduce(numbers(operands[0]), stream);
  };
}

/// Norms of queries and keys, and heads of keys and values that several ranks have: each rank of
/// tensor parallelism made the gradient of its own query heads.
OpKernel ProgramBinder::sum_shared(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  return [this, operands, group = group_of(op)](DeviceStream& stream) {
    for (const TensorView& each : all(operands, OperandPart::gradients)) {
      group->all_reduce(each, stream);
    }
  };
}

/// In the order of the other stage's ranks.
std::vector<ProgramBinder::TablePart> ProgramBinder::common_table_parts() const {
  const LoweringContext& context = *parts_.context;
  const Layout& layout = context.layout();
  const std::int32_t other = layout.pp - 1 - program_.stage;
  const Placement optimizer = context.placement.optimizer;
  const ShardRange own = table_part(parts_.state->units(), optimizer, parts_.state->place());
  const StateUnits units = state_units(context, other);
  const std::vector<std::int64_t> ranks = table_ranks(layout, parts_.rank);
  std::vector<TablePart> common;
  for (std::size_t peer = 0; peer < ranks.size(); ++peer) {
    if (stage_of(layout, ranks[peer]) != other) continue;
    const ShardRange theirs = table_part(units, optimizer, place_of(layout, ranks[peer]));
    const std::int64_t begin = std::max(own.begin, theirs.begin);
    const std::int64_t end = std::min(own.begin + own.count, theirs.begin + theirs.count);
    if (begin >= end) continue;
    common.push_back({static_cast<int>(peer), static_cast<std::size_t>(begin - own.begin),
                      static_cast<std::size_t>(end - begin)});
  }
  return common;
}

std::vector<ConstTensorView> ProgramBinder::gradients(Operands operands) const {
  const std::vector<TensorView> found = all(operands, OperandPart::gradients);
  return {found.begin(), found.end()};
}

void ProgramBinder::take_norm(Operands operands, OperandPart sums, int ranks,
                              DeviceStream& stream) const {
  parts_.compute->squares_norm(
      {.sums = at(operands, sums),
       .ranks = ranks,
       .norm = step_at<double>(operands, OperandPart::gradient_norm),
       .clip_norm = parts_.clip_norm,
       .clip_factor = &step_at<AdamStep>(operands, OperandPart::adam_step)->gradient_scale},
      stream);
}

OpKernel ProgramBinder::gradient_norm(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  OpKernel kernel = [this, operands, group = group_of(op)](DeviceStream& stream) {
    all_gather_bytes(*group, bytes(operands, OperandPart::own_squares),
                     bytes(operands, OperandPart::all_squares), stream);
    take_norm(operands, OperandPart::all_squares, group->size(), stream);
  };
  kernel.prepare = [this, operands](DeviceStream& stream) {
    parts_.compute->squares(
        {.tensors = gradients(operands), .sums = at(operands, OperandPart::own_squares)}, stream);
  };
  return kernel;
}

/// A unit's operands begin with its gradients.
std::vector<UnitUpdate> ProgramBinder::updates(Operands operands) const {
  std::vector<UnitUpdate> units;
  for (const Operand& operand : operands) {
    const TensorView own = numbers(operand);
    switch (operand.part) {
      case OperandPart::gradients:
        units.emplace_back();
        units.back().unit = static_cast<std::size_t>(operand.unit);
        units.back().gradients = own;
        break;
      case OperandPart::main_gradients:
        units.back().wide_gradients = own;
        break;
      case OperandPart::weights:
        units.back().weights = own;
        break;
      case OperandPart::main_weights:
        units.back().main = own;
        break;
      case OperandPart::weight_remainders:
        units.back().remainders = {reinterpret_cast<std::uint16_t*>(own.data),
                                   own.count / sizeof(std::uint16_t)};
        break;
      case OperandPart::first_moments:
        units.back().exp_avg = own;
        break;
      case OperandPart::second_moments:
        units.back().exp_avg_sq = own;
        break;
      default:
        break;
    }
  }
  return units;
}

OpKernel ProgramBinder::optimizer(const ProgramOp& op) {
  const Operands operands = program_.operands_of(op);
  const bool checks = has(operands, OperandPart::gradient_check);
  const bool takes_norm = has(operands, OperandPart::gradient_norm);
  return [this, &op, operands, checks, takes_norm](DeviceStream& stream) {
    for (const Operand& operand : operands) {
      if (checks && operand.part == OperandPart::gradients) check(op, operand, stream);
    }
    if (takes_norm) {
      parts_.compute->squares(
          {.tensors = gradients(operands), .sums = at(operands, OperandPart::own_squares)}, stream);
      take_norm(operands, OperandPart::own_squares, 1, stream);
    }
    if (parts_.before_update) parts_.before_update();
    parts_.state->update(updates(operands), step_at<AdamStep>(operands, OperandPart::adam_step),
                         {*parts_.compute, stream});
    if (parts_.after_update) parts_.after_update();
  };
}

}  // namespace shardwise::exec
