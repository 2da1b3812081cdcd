#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "executor/engine/arena.h"
#include "executor/engine/program_buffers.h"
#include "executor/engine/rank_state.h"
#include "planner/spec/step_program.h"

namespace shardwise::exec {

/// The parameters that a layer computes with: its own, and the token table where a head has none.
std::vector<TensorPlace> parameters_of(const ModelSpec& model, const StateUnits& units,
                                       std::int32_t layer);

/// Where backward passes put the gradients of a unit.
/// Kernels make them in StateTypes::made. Sums of micro-batches have the type of what a rank keeps,
/// or, where single tensors wait for the last micro-batch to be reduced, of what is reduced.
///
/// Gradients of one micro-batch are made from zeros, then added to those of earlier micro-batches:
/// ((g0 + g1) + g2) + …, the fold that a reduction over ranks makes too, so that it does not matter
/// to a bit whether one rank ran the micro-batches or each a rank of its own.
///
/// What does not begin a sum lies beside it as long as its layer runs, a table that the head works
/// with too from the head on: the ledger counts it (Staging::beside).
struct GradientTarget {
  std::size_t unit = 0;
  std::int32_t owner = 0;  // the layer whose tensors of the unit these are
  std::int64_t begin = 0;  // of the elements in the unit, and how many
  std::int64_t count = 0;
  ItemId item = kNoItem;  // they are made here; kNoItem: in the rank's own gradients
  bool apart = false;     // `item` begins with element `begin`, not with the unit
  bool zeroes = false;    // this operation is the first to touch them
  bool adds = false;      // it is the last, and `sum` holds earlier micro-batches
  bool moves = false;     // it is the last, and they begin `sum`, which is of another type
  ItemId sum = kNoItem;   // kNoItem: the rank's own gradients
};

/// Follows gradients through a program: which operations make them, and which reduction takes them.
class GradientFlow {
 public:
  GradientFlow(const StageProgram& program, const ModelSpec& model, const RankState& state,
               MemoryItems& items, ProgramBuffers& buffers);

  /// Of a backward operation, one for each unit of its parameters.
  const std::vector<GradientTarget>& of(OpId backward) const { return targets_.at(backward); }
  /// What a reduction reads; kNoItem: the rank's own gradients.
  ItemId source(OpId reduce) const { return sources_.at(reduce); }
  /// Whether the rank's gradients hold earlier micro-batches when the reduction begins.
  bool joins_earlier(OpId reduce) const { return joins_.at(reduce); }
  /// Of sums, and so of what a reduction reads.
  DType sum_dtype() const { return sum_dtype_; }

 private:
  using UnitPass = std::pair<std::size_t, std::int32_t>;  // unit, micro-batch
  /// Tensors of one layer in a unit, in one micro-batch.
  struct Part {
    std::size_t unit = 0;
    std::int32_t microbatch = 0;
    std::int32_t owner = 0;
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  void reductions(const StageProgram& program);
  void follow(const Part& part, const std::vector<OpId>& ops, MemoryItems& items);
  void set_range(GradientTarget& target) const;
  ItemId planned(std::size_t unit, const std::vector<OpId>& ops);

  const StageProgram& program_;
  const RankState& state_;
  ProgramBuffers& buffers_;
  bool staged_ = false;  // whole gradients are not the rank's own
  DType sum_dtype_ = DType::fp32;
  std::map<UnitPass, OpId> taken_;   // by the last micro-batch in them: who takes them
  std::map<UnitPass, ItemId> sums_;  // the same
  std::set<std::pair<UnitPass, std::int32_t>> begun_;  // parts that are in these sums, by owner
  std::map<OpId, std::vector<GradientTarget>> targets_;
  std::map<OpId, ItemId> sources_;
  std::map<OpId, bool> joins_;
};

/// The unit that a gather, a copy or a reduction moves.
std::size_t unit_of(const StateUnits& units, const ProgramOp& op);

}  // namespace shardwise::exec
