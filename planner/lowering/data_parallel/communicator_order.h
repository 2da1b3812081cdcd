#pragma once

#include <array>

#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// Gathers and reductions of one group that share a communicator run one after the other, in the
/// order in which they were issued, whatever their streams. Source: NCCL user guide, "Using
/// multiple NCCL communicators concurrently"; Megatron-LM, --create-all-gather-group.
class CommunicatorOrder {
 public:
  explicit CommunicatorOrder(bool shared) : shared_(shared) {}

  /// Operation that a gather (or reduction) of routed or dense parameters must wait for now.
  OpId before_gather(bool routed) const { return shared_ ? reduce_[routed ? 1 : 0] : kNone; }
  OpId before_reduce(bool routed) const { return shared_ ? gather_[routed ? 1 : 0] : kNone; }
  void gathered(bool routed, OpId op) { gather_[routed ? 1 : 0] = op; }
  void reduced(bool routed, OpId op) { reduce_[routed ? 1 : 0] = op; }

 private:
  bool shared_;
  std::array<OpId, 2> gather_ = {kNone, kNone};
  std::array<OpId, 2> reduce_ = {kNone, kNone};
};

}  // namespace shardwise
