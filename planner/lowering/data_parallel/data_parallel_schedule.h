#pragma once

#include <memory>
#include <span>
#include <vector>

#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"
#include "planner/schedule/schedule.h"

namespace shardwise {

/// One layer of a pass, about to be issued or just issued.
struct LayerTurn {
  PipelinePass pass;
  std::span<const StageLayer> order;   // the layers of the pass in the order in which they run
  std::size_t at = 0;                  // this one
  std::span<const std::size_t> slots;  // of the layers of `order`, counted over the stage
  bool last = false;                   // the stage's last operation before gradients are final

  const StageLayer& layer() const { return order[at]; }
  std::size_t slot() const { return slots[at]; }
  bool needs_weights() const { return pass.part != LayerPart::backward_weight; }
  bool makes_gradients() const {
    return pass.part == LayerPart::backward || pass.part == LayerPart::backward_weight;
  }
};

/// Lists of what a layer's operation waits for, and of what begins and ends with it.
struct OperationLists {
  std::vector<OpId> waits;
  std::vector<BufferId> allocates;
  std::vector<BufferId> frees;
  std::vector<BufferId> uses;
  void clear() {
    waits.clear();
    allocates.clear();
    frees.clear();
    uses.clear();
  }
};

/// Emits the data-parallel operations of a stage around the passes of its layers: the change of
/// placement is the law's, the moment the engine's. docs/step_program.md.
class DataParallelSchedule {
 public:
  virtual ~DataParallelSchedule() = default;
  DataParallelSchedule() = default;
  DataParallelSchedule(const DataParallelSchedule&) = delete;
  DataParallelSchedule& operator=(const DataParallelSchedule&) = delete;

  /// Before the first pass of the step.
  virtual void start() = 0;
  /// Before the operation of a layer; adds what it waits for, allocates and frees.
  virtual void before(const LayerTurn& turn, OperationLists& lists) = 0;
  /// After it.
  virtual void after(const LayerTurn& turn, OpId op) = 0;
  /// After the last pass: reductions that did not overlap.
  virtual void finish() = 0;
  /// After the optimizer step.
  virtual void after_step(OpId optimizer) = 0;
  /// Buffers that the optimizer step frees: gradients that were made in backward.
  const std::vector<BufferId>& late_buffers() const { return late_buffers_; }
  /// Those of them that exist from it on.
  const std::vector<BufferId>& step_allocates() const { return step_allocates_; }

 protected:
  std::vector<BufferId> late_buffers_;
  std::vector<BufferId> step_allocates_;
};

/// Parameters are sharded: units are gathered before they compute, reduced after (ZeRO-3, FSDP).
std::unique_ptr<DataParallelSchedule> sharded_parameters(const LoweringContext& context,
                                                         std::int32_t stage, StageBuilder& builder);
/// Parameters are whole on every rank: buckets of gradients are reduced as they become ready,
/// updated parameters gathered (ZeRO-0 to ZeRO-2).
std::unique_ptr<DataParallelSchedule> whole_parameters(const LoweringContext& context,
                                                       std::int32_t stage, StageBuilder& builder);

}  // namespace shardwise
