#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/memory/memory.h"

namespace shardwise {

/// When an engine with one bucket for all reductions (reduce_buffer()) reduces a stage's gradients.
enum class BucketUse : std::uint8_t {
  none,      // it has no such bucket, or gradients leave with the optimizer, which is not followed
  as_made,   // backward fills it and reduces it when the next gradient would not fit
  at_end,    // when backward has made all gradients
  all_once,  // then too, without the bucket: all gradients are joined in one tensor
};
/// Under DeepSpeed ZeRO-0 reduces all at once, and ZeRO-1 at the end unless reductions overlap: of
/// several micro-batches, gradients have been whole until the last in any case.
BucketUse bucket_use(const StageContext& context);

/// Copies that DeepSpeed's reductions make of a bucket while backward runs: the bucket's gradients,
/// or one that is larger than a bucket, joined in another tensor. ZeRO-1 and 2 do so where it has
/// parts of several ranks; of one larger than a bucket, parts are joined until they are more than a
/// bucket, and a part alone is not copied. A reduction begins when the gradient after is made. The
/// first one makes room for the gradients that a rank keeps (RankPart::whole) when its copy is
/// gone. Source: deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/stage_1_and_2.py:1411-1440,
/// 1540-1580, 2367; deepspeed/runtime/comm/coalesced_collectives.py:122;
/// deepspeed/runtime/zero/partitioned_param_coordinator.py (release_backward_leftovers).
class BucketCopies {
 public:
  struct Reduction {
    std::int64_t ready = 0;    // elements of the stage's layers after the one that begins it
    std::int64_t made = 0;     // of that layer, of which it has made the gradients before
    std::int64_t begins = 0;   // of the tensor whose gradient begins it; 0 = the end of backward
    std::int64_t weights = 0;  // of those in use under ZeRO-3: its own, or at the end the
                               // embedding's, whose input has no gradient that would release them
    std::int64_t joined = 0;   // elements of the copy
    std::int64_t beside = 0;   // of gradients outside the bucket
    std::int64_t kept = 0;     // of gradients of the rank's part that reductions have left
  };

  BucketCopies() = default;
  /// \pre bucket_use() is as_made
  BucketCopies(const StageParts& parts, const StageContext& context);

  /// The fullest that a layer begins; null where it begins none.
  const Reduction* at(const StageMoment& moment) const;
  /// Whether layers after it have begun one.
  bool any_before(const StageMoment& moment) const;
  /// `ready` of the first four layers that begin one, beside which most activations still are.
  std::vector<std::int64_t> first_ready() const;

 private:
  std::vector<Reduction> reductions_;  // one a layer, the last layer first
};

/// The pass of a layer when it makes the gradient that begins a reduction. Those of other tensors
/// than matrices count as made by the operation that runs next.
/// \param made  elements of the layer's gradients that are made before
PassMemory when_made(const LeavingGradients& leaving, std::int64_t made);

/// Elements of the first bucket that is filled from the first tensor on; 0 where that one is
/// larger. \pre bucket_use() is at_end
std::int64_t first_bucket(const StageParts& parts, const EngineProfile& engine,
                          const Layout& layout);

}  // namespace shardwise
