#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/offloaded_activations.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// The buffers that the passes of a stage's layers make and free, as the planner's ledger counts
/// them (docs/memory.md): what a layer keeps from forward to backward, and what comes and goes
/// while it runs, which is there as long as its operation.
class PassMemoryBuffers {
 public:
  PassMemoryBuffers(const LoweringContext& context, std::int32_t stage, StageBuilder& builder);

  /// States and libraries: there all the time.
  void residents();
  /// A layer is next: where activations go to the host, room for those it keeps.
  void place(const LayerTurn& turn, OperationLists& lists);
  void before(const LayerTurn& turn, OperationLists& lists);
  void after(const LayerTurn& turn, OpId op);
  /// Adds what exists while the optimizer steps.
  void optimizer(OperationLists& lists);

 private:
  void keep(const LayerTurn& turn, OperationLists& lists);
  bool leaves_behind(const LayerTurn& turn, BufferId& kept, OperationLists& lists);
  std::int64_t saved_bytes(const StageLayer& layer) const;
  void gradients_beside(const LayerTurn& turn, OperationLists& lists);
  void table_gradients(const LayerTurn& turn, OperationLists& lists);
  std::int64_t peak_of(const LayerTurn& turn, const PassMemory& pass) const;

  const LoweringContext& context_;
  std::int32_t stage_;
  StageBuilder& builder_;
  StageParts parts_;
  bool gradients_leave_;
  OffloadedActivations offloaded_;
  std::size_t layers_ = 0;
  std::vector<BufferId> saved_;  // by micro-batch and slot
  std::vector<BufferId> left_;   // of layers whose backward pass is over, to the end of all
  BufferId tables_ = kNone;
  BufferId sent_ = kNone;
  BufferId table_ = kNone;          // its gradients, from the head on
  std::int64_t tied_gradient_ = 0;  // bytes that a tied head of the pass has made
  BufferId tied_table_ = kNone;     // where they wait for the embedding's
  bool started_ = false;
};

}  // namespace shardwise
