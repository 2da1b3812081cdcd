#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "planner/lowering/data_parallel/arena_slots.h"
#include "planner/lowering/data_parallel/communicator_order.h"
#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/data_parallel/fp32_sums.h"
#include "planner/lowering/data_parallel/unit_work.h"

namespace shardwise {

/// Reduces the gradients of units after their backward passes, by the rule of the engine.
/// docs/gathers_and_reductions.md, "Reductions", has the rules and their sources.
class UnitReductions {
 public:
  UnitReductions(const LoweringContext& context, std::int32_t stage, StageBuilder& builder,
                 UnitTable& units, CommunicatorOrder& order, ArenaSlots& slots);

  void before(const LayerTurn& turn, OperationLists& lists);
  void after(const LayerTurn& turn, OpId op);
  /// Gradients that the optimizer step frees.
  const std::vector<BufferId>& late_buffers() const { return late_buffers_; }

 private:
  /// A reduction on its way that backward has not waited for.
  struct Pending {
    OpId op = kNone;
    std::int64_t elements = 0;
    std::size_t unit = 0;     // its number
    bool root = false;        // of root_buckets()
    BufferId staged = kNone;  // gradients that a queue holds until backward has waited
  };
  struct Unit {
    BufferId staged = kNone;   // gradients, whole, until they are reduced
    bool accumulated = false;  // there is something that the next reduction adds to
    bool late = false;         // its gradient shard exists
  };

  bool reduces(const LayerTurn& turn) const;
  bool queues() const { return !copies_ && !slots_.on(); }
  void hold(const LayerTurn& turn, const LayerUnit& unit, OperationLists& lists);
  std::int64_t last_elements() const;
  BufferId wait_for_place(std::size_t unit, std::int64_t bytes, OperationLists& lists);
  void drain(const LayerTurn& turn);
  BufferId late_buffer(const LayerTurn& turn);
  bool is_joined(const StageLayer& layer) const;
  void hold_root(const LayerTurn& turn, OperationLists& lists);
  OpId join_root(const LayerTurn& turn, OpId op, BufferId& staged);
  OpId copy_in(const LayerTurn& turn, OpId op, BufferId& staged);
  BufferId beside_copy(const LayerTurn& turn);
  void reduce_units(const LayerTurn& turn, OpId op);
  void reduce_unit(const LayerTurn& turn, const LayerUnit& unit, OpId op);
  void reduce(const LayerTurn& turn, const LayerUnit& unit, OpId made, BufferId staged);
  void reduce_outer(const LayerTurn& turn, const LayerUnit& unit,
                    const std::array<OpId, 2>& reduced, OpId accumulated);

  const LoweringContext& context_;
  StageBuilder& builder_;
  UnitTable& units_;
  StageUnits stage_units_;
  CommunicatorOrder& order_;
  ArenaSlots& slots_;
  Fp32Sums sums_;
  std::int64_t turns_ = 0;         // of units with the buffers of an arena
  bool copies_ = false;            // gradients are tensors of their own, copied to be reduced
  std::int64_t staged_bytes_ = 0;  // of a gradient element that waits for its reduction
  std::int64_t late_bytes_ = 0;    // of a gradient element made in backward, 0 = in a buffer
  std::int64_t capacity_ = 0;      // elements that a queue keeps beside the last unit
  std::vector<Unit> unit_;         // by number
  std::deque<Pending> pending_;
  std::int64_t pending_elements_ = 0;
  OpId last_reduced_ = kNone;
  BufferId kept_ = kNone;          // its input, where the engine keeps it (keeps_last_reduction)
  bool one_buffer_ = false;        // all reductions go through the same buffer
  std::int64_t buffer_bytes_ = 0;  // of it, where it comes with backward
  bool joins_ = false;             // joins_root()
  bool makes_anew_ = false;        // and gradients each micro-batch: none wait for the last one
  std::int64_t root_elements_ = 0;
  BufferId made_ = kNone;         // gradients of the root's last layer, while they are joined, …
  BufferId joined_ = kNone;       // … and what they are joined in
  bool ends_with_piece_ = false;  // whole units that wait: MemoryRules::whole_pieces
  BufferId buffer_ = kNone;
  std::vector<BufferId> late_buffers_;
};

}  // namespace shardwise
