#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "planner/lowering/operands/operand_writer.h"

namespace shardwise {

/// Where backward passes put the gradients of a unit.
/// Kernels make them in StateTypes::made. Sums of micro-batches have the type of what a rank keeps,
/// or, where single tensors wait for the last micro-batch to be reduced, of what is reduced.
///
/// On a CPU gradients of one micro-batch are made from zeros, then added to those of earlier
/// micro-batches: ((g0 + g1) + g2) + …, the fold that a reduction over ranks makes too, so that it
/// does not matter to a bit whether one rank ran the micro-batches or each a rank of its own. What
/// does not begin a sum lies beside it as long as its layer runs, a table that the head works with
/// too from the head on: the ledger counts it (Staging::beside).
///
/// Kernels of GPUs add to the sum itself (KernelTraits::adds_to_sums).
struct GradientTarget {
  std::size_t unit = 0;
  std::int32_t owner = 0;  // the layer whose tensors of the unit these are
  std::int64_t begin = 0;  // of the elements in the unit, and how many
  std::int64_t count = 0;
  Operand made;         // they are made here
  Operand sum;          // and become this, or join it, where that is elsewhere
  bool apart = false;   // `made` is elsewhere than `sum`
  bool joins = false;   // `made` is the sum of earlier micro-batches
  bool begins = false;  // this operation is the first to touch them
  bool ends = false;    // it is the last
};

/// Follows gradients through a program: which operations make them, and which reduction takes them.
class GradientFlow {
 public:
  /// Makes the buffers of sums and of what lies beside them.
  explicit GradientFlow(OperandWriter& writer);

  /// Targets of a backward operation, one for each unit of its parameters.
  const std::vector<GradientTarget>& of(OpId backward) const { return targets_.at(backward); }
  /// Operand a reduction reads, or the copy into its input.
  Operand source(OpId reduce) const;
  /// Whether a reduction begins with what earlier micro-batches left in the rank's gradients.
  bool joins_earlier(OpId reduce) const;

 private:
  using UnitPass = std::pair<std::size_t, std::int32_t>;  // unit, micro-batch
  /// Tensors of one layer in a unit, in one micro-batch.
  struct Part {
    std::size_t unit = 0;
    std::int32_t microbatch = 0;
    std::int32_t owner = 0;
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  void reductions();
  void follow(const Part& part, const std::vector<OpId>& ops);
  void set_range(GradientTarget& target) const;
  BufferId planned(std::size_t unit, const std::vector<OpId>& ops);

  OperandWriter& writer_;
  bool staged_ = false;  // whole gradients are not the rank's own
  DType sum_dtype_ = DType::fp32;
  std::map<UnitPass, OpId> taken_;     // by the last micro-batch in them: who takes them
  std::map<UnitPass, BufferId> sums_;  // the same; kNone: the rank's own gradients
  std::set<std::pair<UnitPass, std::int32_t>> begun_;  // parts that are in these sums, by owner
  std::map<OpId, std::vector<GradientTarget>> targets_;
  std::map<OpId, BufferId> sources_;
  std::map<OpId, bool> joins_;
};

}  // namespace shardwise
