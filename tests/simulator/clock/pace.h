#pragma once

#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// Seconds of a stage's, or a block's, passes for one micro-batch, and of a message.
struct Pace {
  double forward = 1;
  double input = 1;
  double weight = 1;
  double hop = 0;
};

inline double seconds_of(LayerPart part, const Pace& pace) {
  switch (part) {
    case LayerPart::forward:
      return pace.forward;
    case LayerPart::backward:
      return pace.input + pace.weight;
    case LayerPart::backward_input:
      return pace.input;
    case LayerPart::backward_weight:
      return pace.weight;
    case LayerPart::recompute:
      break;
  }
  return 0;
}

}  // namespace shardwise::sim
