#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// y [rows, width] = silu(gate) up, where gate_up [rows, 2 width] holds the gates of a row and then
/// its ups. silu(x) = x / (1 + e^-x). Shazeer, arXiv:2002.05202, equation 6.
template <class E>
void swiglu_forward(std::int64_t rows, std::int64_t width, const E* gate_up, E* y,
                    Workers& workers);

/// Puts the gradient of gate_up in its place. d_y [rows, width]
template <class E>
void swiglu_backward(std::int64_t rows, std::int64_t width, E* gate_up, const E* d_y,
                     Workers& workers);

}  // namespace shardwise::exec
