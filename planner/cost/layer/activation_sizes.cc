#include "planner/cost/layer/operation_sizes.h"

namespace shardwise {

void size_activation(OperationMemory& m, const OperationSizes& s) {
  const OperationSpec& op = *m.operation;
  const std::int64_t rows = op.routed_expert ? s.routed : s.tokens;
  m.output = rows * s.cut(op.width, op) * s.bytes;
  m.input_gradient = op.gated ? 2 * m.output : m.output;
  // ReLU's gradient reads what it made, which the product after it keeps anyway; our kernels read
  // what it was given. Source: pytorch@v2.15.0:tools/autograd/derivatives.yaml, relu.
  const bool by_output = s.relu && !op.gated && s.kernels != Kernels::planned;
  m.keeps_read[0] = !by_output;
  m.keeps_output = by_output;
  if (op.gated && s.kernels == Kernels::eager && !s.own_modules())
    m.copies = m.output;  // silu(gate) of the product
  if (s.composes_activation(op)) {
    // Kept: what the power reads, tanh's output, and the factors (1 + tanh) and x / 2 of the
    // result. Autocast makes the power in fp32, of a cast, and so all but x / 2.
    const std::int64_t wide = s.autocasts ? m.output / s.bytes * kFp32Bytes : m.output;
    m.keeps_read[0] = !s.autocasts;
    m.copies = (s.autocasts ? wide : 0) + 2 * wide + m.output;
    m.forward_extra = wide;       // the power, and its multiple
    m.backward_extra = 2 * wide;  // gradients of the result's factors
  }
  if (!op.routed_expert) return;
  m.statistics = rows * kFp32Bytes;    // router probabilities, applied here
  if (!op.gated) m.copies = m.output;  // the value before it is weighted
}

}  // namespace shardwise
