#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

// Hendrycks and Gimpel, arXiv:1606.08415: x Phi(x), and its approximation
// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which transformers calls gelu_new.
enum class Gelu : std::uint8_t { erf, tanh };

/// y = gelu(x); y may be x. x, y: [batch, seq, intermediate], in all `count` elements
template <class E>
void gelu_forward(Gelu kind, std::int64_t count, const E* x, E* y, Workers& workers);

/// d_x = gelu'(x) d_y; d_x may be x or d_y. Shapes as in forward.
template <class E>
void gelu_backward(Gelu kind, std::int64_t count, const E* x, const E* d_y, E* d_x,
                   Workers& workers);

}  // namespace shardwise::exec
