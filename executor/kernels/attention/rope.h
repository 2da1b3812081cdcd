#pragma once

#include <cstdint>

#include "executor/kernels/element.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// The heads to be rotated: `heads` runs of head_dim elements at the start of each of
/// [batch, sequence] rows, stride elements from row to row. Queries and then keys of one tensor.
struct RopeShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t stride = 0;
};

/// Cosines and sines, each [sequence, head_dim / 2]: of position x frequency[i].
///   frequency [head_dim / 2], in radians a position
struct RopeTables {
  const float* cosines = nullptr;
  const float* sines = nullptr;
};
void rope_tables(std::int64_t sequence, std::int64_t head_dim, const double* frequency,
                 float* cosines, float* sines);

/// Rotates each pair (x[i], x[i + head_dim / 2]) by its position's angle, in place; backward turns
/// gradients back. Su et al., arXiv:2104.09864, section 3.2.2, in the pairing of transformers'
/// rotate_half.
template <class E>
void rope_forward(const RopeShape& shape, const RopeTables& tables, E* x, Workers& workers);
template <class E>
void rope_backward(const RopeShape& shape, const RopeTables& tables, E* d_x, Workers& workers);

}  // namespace shardwise::exec
