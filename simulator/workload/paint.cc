#include "simulator/workload/paint.h"

namespace shardwise::sim {

Paint paint_of(const ProgramOp& op) {
  switch (op.stream) {
    case Stream::tensor_parallel:
    case Stream::context_parallel:
    case Stream::expert_parallel:
      return Paint::layer;
    case Stream::send:
    case Stream::receive:
      return Paint::message;
    default:
      break;
  }
  switch (op.role) {
    case OpRole::forward:
      return Paint::forward;
    case OpRole::backward:
    case OpRole::backward_input:
      return Paint::backward;
    case OpRole::backward_weight:
      return Paint::weight;
    case OpRole::recompute:
      return Paint::recompute;
    case OpRole::gather:
    case OpRole::gather_outer:
    case OpRole::gather_updated:
      return Paint::gather;
    case OpRole::reduce:
    case OpRole::reduce_outer:
      return Paint::reduce;
    case OpRole::finalize:
    case OpRole::gradient_norm:
    case OpRole::optimizer:
      return Paint::optimizer;
    default:
      return Paint::copy;
  }
}

}  // namespace shardwise::sim
