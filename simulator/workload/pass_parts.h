#pragma once

#include "planner/cost/layer/layer_time.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// The pass of a layer that a part belongs to.
inline const PassTime& pass_of(const LayerTime& layer, LayerPart part) {
  if (part == LayerPart::forward) return layer.forward;
  return part == LayerPart::recompute ? layer.recompute : layer.backward;
}

/// Time a part of a pass takes by itself.
inline Seconds alone_of(const LayerTime& layer, LayerPart part) {
  if (part == LayerPart::backward_weight) return layer.weight_gradient;
  const Seconds whole = pass_of(layer, part).stream();
  return part == LayerPart::backward_input ? whole - layer.weight_gradient : whole;
}

/// The seconds for which the communication of an axis of layers (tp, cp, ep) stops a part. The
/// input gradients carry that of a split backward pass.
inline Seconds stops(const LayerTime& layer, LayerPart part, Stream axis) {
  if (part == LayerPart::backward_weight) return Seconds(0);
  const PassTime& pass = pass_of(layer, part);
  switch (axis) {
    case Stream::tensor_parallel:
      return pass.tp;
    case Stream::context_parallel:
      return pass.cp;
    case Stream::expert_parallel:
      return pass.ep;
    default:
      return Seconds(0);
  }
}

}  // namespace shardwise::sim
