#include "planner/lowering/operands/gradient_flow.h"

#include <algorithm>

#include "planner/spec/text/check.h"

namespace shardwise {

GradientFlow::GradientFlow(OperandWriter& writer)
    : writer_(writer),
      staged_(writer.placement().gradients != Placement::replicate &&
              writer.run().place.shard_ranks > 1) {
  reductions();
  const StateUnits& units = *writer.run().units;
  std::map<Part, std::vector<OpId>> makers;
  for (OpId op = 0; op < writer.program().operations.size(); ++op) {
    const ProgramOp& each = writer.operation(op);
    if (each.role != OpRole::backward || is_between_regions(writer.program(), each)) continue;
    targets_[op];
    for (const TensorPlace& place : parameters_of(writer.run().model(), units, each.layer)) {
      const std::int32_t owner = units.tensor(place).layer;
      std::vector<OpId>& ops = makers[{place.unit, each.microbatch, owner}];
      if (ops.empty() || ops.back() != op) ops.push_back(op);
    }
  }
  const StateTypes& types = writer.types();
  const bool waits = std::ranges::any_of(makers, [&](const auto& made) {
    return staged_ && !taken_.contains({made.first.unit, made.first.microbatch});
  });
  sum_dtype_ = !staged_ ? types.gradients : waits ? types.reduced : types.made;
  // By unit and then by micro-batch: sums are met before what is added to them.
  for (const auto& [part, ops] : makers) follow(part, ops);
}

Operand GradientFlow::source(OpId reduce) const {
  const std::size_t unit = unit_of(*writer_.run().units, writer_.operation(reduce));
  const BufferId sum = sources_.at(reduce);
  if (sum == kNone) {
    return writer_.gradients(Access::input, unit, writer_.placement().gradients);
  }
  return writer_.whole(OperandPart::sent_gradients, Access::input, unit, sum, sum_dtype_);
}

bool GradientFlow::joins_earlier(OpId reduce) const { return staged_ && joins_.at(reduce); }

void GradientFlow::reductions() {
  std::vector<bool> met(writer_.run().units->units.size(), false);
  for (OpId op = 0; op < writer_.program().operations.size(); ++op) {
    const ProgramOp& each = writer_.operation(op);
    if (each.role != OpRole::copy_in && each.role != OpRole::reduce) continue;
    const std::size_t unit = unit_of(*writer_.run().units, each);
    const UnitPass key = {unit, each.microbatch};
    // Whoever comes first takes the gradients: the copy into the reduction's input, or that.
    if (!taken_.contains(key)) taken_[key] = op;
    sources_[op] = kNone;
    if (each.role == OpRole::reduce) {
      joins_[op] = met[unit];
      met[unit] = true;
    }
  }
}

/// The buffer that the schedule has for a unit's gradients. Embedding and head take turns with one;
/// a table that both work with is in it from the head on, and what else such a head makes has a
/// buffer of its own.
BufferId GradientFlow::planned(std::size_t unit, const std::vector<OpId>& ops) {
  const StateUnit& own = writer_.unit(unit);
  const OpId last = ops.back();
  if (own.layer < 0 || writer_.operation(last).layer != own.layer) return kNone;
  return writer_.placed(last, OperandPart::gradient_sum, own.elements * bytes_of(sum_dtype_));
}

/// A unit that is one layer's is all of it, with what pads its end.
void GradientFlow::set_range(GradientTarget& target) const {
  const StateUnit& unit = writer_.unit(target.unit);
  target.count = unit.elements;
  if (unit.layer >= 0) return;
  target.begin = unit.elements;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < unit.tensors.size(); ++i) {
    if (unit.tensors[i].layer != target.owner) continue;
    target.begin = std::min(target.begin, unit.tensors[i].begin);
    // And what aligns the next one, or pads the end.
    end = i + 1 < unit.tensors.size() ? unit.tensors[i + 1].begin : unit.elements;
  }
  target.count = end - target.begin;
}

void GradientFlow::follow(const Part& part, const std::vector<OpId>& ops) {
  constexpr auto kStaging = MemoryCategory::gradient_staging;
  const std::size_t unit = part.unit;
  const UnitPass pass = {unit, part.microbatch};
  const DType made = writer_.types().made;
  // The reduction that takes this micro-batch's gradients is the next one of the unit.
  auto taker = staged_ ? taken_.lower_bound(pass) : taken_.end();
  const bool held = staged_ && taker != taken_.end() && taker->first.first == unit;
  SHARDWISE_CHECK(held == staged_, "gradients that nobody reduces");
  const UnitPass window = held ? taker->first : UnitPass{unit, -1};
  if (!sums_.contains(window)) {
    BufferId sum = held ? planned(unit, ops) : kNone;
    if (held && sum == kNone) {
      sum = writer_.make(kStaging, writer_.unit(unit).elements * bytes_of(sum_dtype_));
    }
    sums_[window] = sum;
  }
  GradientTarget target;
  target.unit = unit;
  target.owner = part.owner;
  set_range(target);
  const bool first = begun_.insert({window, part.owner}).second;
  target.joins = !first && made == sum_dtype_ && writer_.adds_to_sums();
  target.apart = made != sum_dtype_ || (!first && !target.joins);
  const BufferId own = writer_.state(unit).gradients;
  target.sum = writer_.whole(OperandPart::gradient_sum, first ? Access::output : Access::accumulate,
                             unit, held ? sums_[window] : own, sum_dtype_);
  target.sum.first = target.begin;
  target.sum.count = target.count;
  target.made = target.sum;
  target.made.part = OperandPart::made_gradients;
  target.made.access = Access::input;
  if (target.apart) {
    target.made.dtype = made;
    target.made.first = 0;
    target.made.buffer = writer_.make(kStaging, target.count * bytes_of(made), -1, part.microbatch);
  }
  for (const OpId op : ops) {
    GradientTarget here = target;
    here.begins = op == ops.front();
    here.ends = op == ops.back();
    targets_[op].push_back(here);
  }
  if (held) sources_[taker->second] = sums_[window];
}

}  // namespace shardwise
