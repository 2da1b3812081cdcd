#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/lowering/data_parallel/arena_slots.h"
#include "planner/lowering/data_parallel/communicator_order.h"
#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/data_parallel/unit_work.h"

namespace shardwise {

/// Gathers the parameters of units before they compute and frees them after, by the rule of the
/// engine. docs/gathers_and_reductions.md, "Gathers", has the rules and their sources.
class ParameterGathers {
 public:
  ParameterGathers(const LoweringContext& context, std::int32_t stage, StageBuilder& builder,
                   UnitTable& units, CommunicatorOrder& order, ArenaSlots& slots);

  void before(const LayerTurn& turn, OperationLists& lists);
  void after(const LayerTurn& turn, OpId op);
  /// Parts of weights that are there to the end of the step. \pre all passes have run
  std::vector<BufferId> late_buffers() const;

 private:
  enum class Rule : std::uint8_t {
    copied,           // into buffers of the gather, copied out of them (FSDP2)
    limited,          // two units at most, gathered when needed, backward one ahead (FSDP1)
    queued,           // ahead until so many elements are there (Megatron-FSDP, DeepSpeed)
    double_buffered,  // the next unit into the buffer that the unit before left
  };
  /// A unit of the stage and what of it is whole now.
  struct Held {
    bool whole = false;
    bool used = false;    // since it was gathered
    bool copied = false;  // rule copied: out of the gather's output
    bool outer = false;   // gathered over the outer axis in this step
    std::array<OpId, 2> ready = {kNone, kNone};
    BufferId output = kNone;     // of the gather
    BufferId unsharded = kNone;  // what computes
    OpId resharded = kNone;      // kept the part that is gathered next
    BufferId part = kNone;
    std::int64_t number = -1;  // of the gathers that take turns with buffers
    bool waits = false;        // for the end of backward
  };

  bool is_root(const StageLayer& layer) const;
  bool kept_over_step(const StageLayer& layer, const LayerUnit& unit) const;
  bool kept_to_backward(const StageLayer& layer, const LayerUnit& unit) const;
  bool released_after(const LayerTurn& turn, const LayerUnit& unit) const;
  bool waits_for_end(const LayerTurn& turn) const;
  void release_waiting(const LayerTurn& turn, OperationLists& lists);
  void issue(const LayerTurn& turn, std::size_t at);
  void issue(const LayerTurn& turn, std::size_t at, const LayerUnit& unit);
  OpId issue_outer(const LayerTurn& turn, std::size_t at, const LayerUnit& unit, bool routed,
                   std::int32_t cost);
  OpId turn_of_buffer(Held& held);
  void copy_out(const LayerTurn& turn, Held& held);
  bool reshards_after(const LayerTurn& turn, const LayerUnit& unit) const;
  void after(const LayerTurn& turn, const LayerUnit& unit, OpId op);
  void reshard(const LayerTurn& turn, Held& held, OpId op);
  void prefetch(const LayerTurn& turn);
  BufferId make_double_buffers();

  const LoweringContext& context_;
  std::int32_t stage_;
  StageBuilder& builder_;
  UnitTable& units_;
  StageUnits stage_units_;
  CommunicatorOrder& order_;
  ArenaSlots& slots_;
  Rule rule_ = Rule::copied;
  std::vector<Held> held_;     // by number of the unit
  std::int64_t ahead_ = 0;     // elements gathered and not yet used
  std::int64_t capacity_ = 0;  // of them, in a queue
  bool stays_ = false;         // what is kept over the step, to the next: BuffersBetweenSteps
  std::vector<OpId> users_;    // by number: the operation that freed it
  OpId gate_ = kNone;          // rule copied: gathers issued now wait for this copy
  OpId last_copy_ = kNone;     // and the copy whose output forward keeps
  BufferId last_output_ = kNone;
  BufferId double_buffers_ = kNone;
};

}  // namespace shardwise
