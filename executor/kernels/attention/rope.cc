#include "executor/kernels/attention/rope.h"

#include <algorithm>
#include <cmath>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kRopeRowsATask = 32;

template <class E>
SHARDWISE_INLINE void rotate(E* x, const float* cosines, const float* sines, std::int64_t half,
                             float sign) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = to_float(x[i]);
    const float b = to_float(x[i + half]);
    const float sine = sign * sines[i];
    x[i] = from_float<E>(a * cosines[i] - b * sine);
    x[i + half] = from_float<E>(b * cosines[i] + a * sine);
  }
}

SHARDWISE_VECTOR_CLONES void rotate_head(float* x, const float* cosines, const float* sines,
                                         std::int64_t half, float sign) {
  rotate(x, cosines, sines, half, sign);
}
SHARDWISE_VECTOR_CLONES void rotate_head(Bf16* x, const float* cosines, const float* sines,
                                         std::int64_t half, float sign) {
  rotate(x, cosines, sines, half, sign);
}

template <class E>
void rotate_all(const RopeShape& s, const RopeTables& t, E* x, float sign, Workers& workers) {
  const std::int64_t half = s.head_dim / 2;
  const std::int64_t rows = s.batch * s.sequence;
  workers.run((rows + kRopeRowsATask - 1) / kRopeRowsATask, [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kRopeRowsATask);
    for (std::int64_t row = task * kRopeRowsATask; row < end; ++row) {
      const std::int64_t angles = row % s.sequence * half;
      for (std::int64_t head = 0; head < s.heads; ++head) {
        rotate_head(x + row * s.stride + head * s.head_dim, t.cosines + angles, t.sines + angles,
                    half, sign);
      }
    }
  });
}

}  // namespace

void rope_tables(std::int64_t sequence, std::int64_t head_dim, const double* frequency,
                 float* cosines, float* sines) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t position = 0; position < sequence; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequency[i];
      cosines[position * half + i] = static_cast<float>(std::cos(angle));
      sines[position * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

template <class E>
void rope_forward(const RopeShape& s, const RopeTables& t, E* x, Workers& workers) {
  rotate_all(s, t, x, 1.0F, workers);
}
template <class E>
void rope_backward(const RopeShape& s, const RopeTables& t, E* d_x, Workers& workers) {
  rotate_all(s, t, d_x, -1.0F, workers);
}

template void rope_forward(const RopeShape&, const RopeTables&, float*, Workers&);
template void rope_forward(const RopeShape&, const RopeTables&, Bf16*, Workers&);
template void rope_backward(const RopeShape&, const RopeTables&, float*, Workers&);
template void rope_backward(const RopeShape&, const RopeTables&, Bf16*, Workers&);

}  // namespace shardwise::exec
