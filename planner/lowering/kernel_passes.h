#pragma once

#include <vector>

#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// Passes of layers at granularity `kernel`: one operation for each kernel and collective that the
/// step-time model sums. Kernels follow one another on the compute stream. A collective waits for
/// the kernel before it and the next kernel waits for it; one that runs beside a kernel holds up
/// the kernel after that. An exchange of experts that runs beside another micro-batch holds up
/// nothing.
///
/// Where the context cuts regions, the kernels between two collectives of a pass are one operation,
/// a region, whose price is the sum of theirs. So a block without sequence parallelism is
///   forward    norm … output | all-reduce | norm … down | all-reduce
///   recompute  norm … output | all-reduce | norm … down
///   backward   down … up | all-reduce | norm … queries | all-reduce | norm
/// and a head whose logits are cut over ranks, by chunks of rows,
///   backward   logits | all-gather | gradients, logits | all-gather | … | all-reduce | norm
/// Under sequence parallelism norms have a part of the tokens:
///   forward    norm | all-gather | queries … output | reduce-scatter | norm | all-gather |
///              up … down | reduce-scatter
///   backward   all-gather | down … activation | all-gather | up | reduce-scatter | norm |
///              all-gather | output … queries | all-gather | queries | reduce-scatter | norm
/// The second gather of a half is of the product's input, which is not kept whole.
/// Twice a region's number among a pass's regions is its ProgramOp::part, and that of a collective
/// one more than twice its own. A kernel beside which a
/// collective runs is a region of its own.
class KernelPasses {
 public:
  KernelPasses(const LoweringContext& context, StageBuilder& builder);

  /// Emits a part of a layer, whose first operations wait for and allocate what `lists` says and
  /// whose last one frees. `pass` is the operation that the whole layer would be.
  /// \returns the last operation, kNone when the part has no kernels
  OpId add(const ProgramOp& pass, const StageLayer& layer, LayerPart part,
           const OperationLists& lists);

 private:
  /// The items of a part of a layer in the order in which they run, with their costs.
  struct Step {
    bool moves = false;
    bool beside = false;
    bool awaited = true;  // by a kernel
    Stream stream = Stream::compute;
    std::int32_t part = 0;  // number among the layer's items
    std::int32_t cost = -1;
  };
  const std::vector<Step>& steps(std::int32_t kind, LayerPart part);
  Step step_of(const LayerItem& item, std::int32_t number);
  /// An item of a pass, or a share of one that runs by chunks of rows.
  struct Share {
    const LayerItem* item = nullptr;
    double share = 1;
  };
  static void settle_end(std::vector<Share>& items, LayerPart part);
  void settle_begin(std::vector<Share>& items) const;
  std::vector<Share> in_order(std::int32_t kind, LayerPart part) const;
  std::vector<Step> regions(const std::vector<Share>& items);
  void hide_exchange(std::vector<Step>& steps, std::int32_t kind);

  const LoweringContext& context_;
  StageBuilder& builder_;
  std::vector<std::vector<Step>> steps_;  // by kind and part
  std::vector<bool> made_;
  OpId moved_ = kNone;   // a collective that the next kernel waits for
  OpId beside_ = kNone;  // one that the kernel after the next waits for
};

}  // namespace shardwise
