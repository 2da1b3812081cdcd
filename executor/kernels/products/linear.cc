#include "executor/kernels/products/linear.h"

#include <algorithm>
#include <type_traits>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kProductRowsATask = 64;
constexpr std::int64_t kBiasColumnsATask = 256;

template <class E>
MatrixView<const E> weight_view(const LinearShape& s, const E* weight) {
  return {weight, s.transposed ? s.out : s.in, s.transposed};
}

SHARDWISE_VECTOR_CLONES void add_row(const float* row, std::int64_t count, float* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += row[i];
}
SHARDWISE_VECTOR_CLONES void add_row(const Bf16* row, std::int64_t count, float* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += to_float(row[i]);
}

}  // namespace

template <class E>
void linear_forward(const LinearShape& s, const E* x, const E* weight, const E* bias, E* y,
                    bool adds, Workers& workers) {
  // The bias is there before the product is added to it.
  if (bias != nullptr) {
    workers.run((s.rows + kProductRowsATask - 1) / kProductRowsATask, [&](std::int64_t task) {
      const std::int64_t end = std::min(s.rows, (task + 1) * kProductRowsATask);
      for (std::int64_t r = task * kProductRowsATask; r < end; ++r) {
        E* row = y + r * s.y_stride;
        for (std::int64_t i = 0; i < s.out; ++i) {
          row[i] = adds ? from_float<E>(to_float(row[i]) + to_float(bias[i])) : bias[i];
        }
      }
    });
  }
  MatrixView<const E> w = weight_view(s, weight);
  w.transposed = !w.transposed;
  gemm<E, E, E>({s.rows, s.out, s.in}, {x, s.x_stride}, w, {y, s.y_stride}, adds || bias != nullptr,
                workers);
}

template <class E>
void linear_backward_input(const LinearShape& s, const E* d_y, const E* weight, E* d_x, bool adds,
                           Workers& workers) {
  gemm<E, E, E>({s.rows, s.in, s.out}, {d_y, s.y_stride}, weight_view(s, weight), {d_x, s.x_stride},
                adds, workers);
}

template <class E, class G>
void linear_backward_weight(const LinearShape& s, const E* x, const E* d_y, G* d_weight, G* d_bias,
                            Workers& workers) {
  if (d_weight != nullptr && s.transposed) {
    gemm<E, E, G>({s.in, s.out, s.rows}, {x, s.x_stride, true}, {d_y, s.y_stride},
                  {d_weight, s.out}, true, workers);
  } else if (d_weight != nullptr) {
    gemm<E, E, G>({s.out, s.in, s.rows}, {d_y, s.y_stride, true}, {x, s.x_stride}, {d_weight, s.in},
                  true, workers);
  }
  if (d_bias == nullptr) return;
  workers.run((s.out + kBiasColumnsATask - 1) / kBiasColumnsATask, [&](std::int64_t task) {
    const std::int64_t begin = task * kBiasColumnsATask;
    const std::int64_t count = std::min(kBiasColumnsATask, s.out - begin);
    if constexpr (std::is_same_v<G, float>) {
      for (std::int64_t r = 0; r < s.rows; ++r) {
        add_row(d_y + r * s.y_stride + begin, count, d_bias + begin);
      }
    } else {
      float sums[kBiasColumnsATask] = {};
      for (std::int64_t r = 0; r < s.rows; ++r) {
        add_row(d_y + r * s.y_stride + begin, count, sums);
      }
      for (std::int64_t i = 0; i < count; ++i) add_rounded(d_bias[begin + i], sums[i]);
    }
  });
}

template void linear_forward(const LinearShape&, const float*, const float*, const float*, float*,
                             bool, Workers&);
template void linear_forward(const LinearShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*, bool,
                             Workers&);
template void linear_backward_input(const LinearShape&, const float*, const float*, float*, bool,
                                    Workers&);
template void linear_backward_input(const LinearShape&, const Bf16*, const Bf16*, Bf16*, bool,
                                    Workers&);
template void linear_backward_weight(const LinearShape&, const float*, const float*, float*, float*,
                                     Workers&);
template void linear_backward_weight(const LinearShape&, const Bf16*, const Bf16*, float*, float*,
                                     Workers&);
template void linear_backward_weight(const LinearShape&, const Bf16*, const Bf16*, Bf16*, Bf16*,
                                     Workers&);

}  // namespace shardwise::exec
