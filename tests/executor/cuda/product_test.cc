#include <gtest/gtest.h>

#include <numbers>
#include <optional>

#include "executor/kernels/cuda/products.h"
#include "planner/cost/kernels/gpu_workspace.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

std::vector<std::byte> bias_workspace() {
  return std::vector<std::byte>(static_cast<std::size_t>(kBiasGradientBytes), std::byte{0xff});
}

/// A matrix [rows, columns] in memory of its own, with elements beside each row that nobody reads.
template <class E>
struct Matrix {
  Matrix(std::int64_t row_count, std::int64_t column_count, bool is_transposed, unsigned seed)
      : rows(row_count),
        columns(column_count),
        transposed(is_transposed),
        stride((transposed ? rows : columns) + 3),
        data(as<E>(random_floats((transposed ? columns : rows) * stride, seed))) {}

  std::size_t place(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(transposed ? column * stride + row : row * stride + column);
  }
  double at(std::int64_t row, std::int64_t column) const {
    return to_float(data[place(row, column)]);
  }
  MatrixView<const E> view() const { return {data.data(), stride, transposed}; }

  std::int64_t rows;
  std::int64_t columns;
  bool transposed;
  std::int64_t stride;
  std::vector<E> data;
};

/// a b by the definition in double, row after row.
template <class A, class B>
Doubles matrix_product(const Matrix<A>& a, const Matrix<B>& b) {
  Doubles made;
  for (std::int64_t m = 0; m < a.rows; ++m) {
    for (std::int64_t n = 0; n < b.columns; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.columns; ++k) sum += a.at(m, k) * b.at(k, n);
      made.push_back(sum);
    }
  }
  return made;
}

template <class E, class C>
void expect_product(const GemmShape& s, bool a_transposed, bool b_transposed, bool adds,
                    unsigned seed) {
  host_cuda::set_seed(seed);
  const Matrix<E> a(s.m, s.k, a_transposed, seed);
  const Matrix<E> b(s.k, s.n, b_transposed, seed + 1);
  Matrix<C> c(s.m, s.n, false, seed + 2);
  Doubles expected = matrix_product(a, b);
  const std::vector<C> before = c.data;
  if (adds) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      expected[i] += c.at(at / s.n, at % s.n);
    }
  } else {
    c.data = unwritten<C>(static_cast<std::int64_t>(c.data.size()));
  }
  cuda::gemm(s, a.view(), b.view(), MatrixView<C>{c.data.data(), c.stride}, adds, nullptr);
  Floats made;
  for (std::int64_t m = 0; m < s.m; ++m) {
    for (std::int64_t n = 0; n < s.n; ++n) made.push_back(static_cast<float>(c.at(m, n)));
    for (std::int64_t n = s.n; n < c.stride; ++n) {
      const C beside = c.data[c.place(m, n)];
      ASSERT_TRUE(adds ? to_float(beside) == to_float(before[c.place(m, n)])
                       : std::isnan(to_float(beside)));
    }
  }
  expect_close(made, expected, tolerance<C>(), "c");
}

TEST(CudaGemm, EqualsItsDefinitionOfAnyShapeAndTransposition) {
  const GemmShape shapes[] = {{1, 1, 1}, {32, 32, 16}, {33, 5, 17}, {7, 65, 40}};
  unsigned seed = 1;
  for (const GemmShape& s : shapes) {
    for (int kind = 0; kind < 8; ++kind) {
      SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k << ", " << kind);
      const bool a = (kind & 1) != 0;
      const bool b = (kind & 2) != 0;
      const bool adds = (kind & 4) != 0;
      expect_product<float, float>(s, a, b, adds, ++seed);
      expect_product<Bf16, float>(s, a, b, adds, ++seed);
      expect_product<Bf16, Bf16>(s, a, b, adds, ++seed);
    }
  }
}

TEST(CudaGemm, HasTheSameBitsInEveryOrderOfThreads) {
  const Matrix<float> a(40, 50, false, 1);
  const Matrix<float> b(50, 40, false, 2);
  Floats first;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    host_cuda::set_seed(seed);
    Floats c = unwritten<float>(40LL * 40);
    cuda::gemm({40, 40, 50}, a.view(), b.view(), MatrixView<float>{c.data(), 40}, false, nullptr);
    if (first.empty()) first = c;
    EXPECT_EQ(c, first);
  }
}

TEST(CudaGemm, OfNoDepthIsZero) {
  Floats c = unwritten<float>(6);
  cuda::gemm({2, 3, 0}, MatrixView<const float>{}, MatrixView<const float>{},
             MatrixView<float>{c.data(), 3}, false, nullptr);
  EXPECT_EQ(c, Floats(6, 0.0F));
}

TEST(CudaGemm, NeedsEachOfItsBarriers) {
  expect_every_barrier_is_needed([] {
    expect_product<Bf16, float>({33, 5, 40}, false, false, false, 1);
  });
}

double gelu_of(Gelu kind, double x) {
  if (kind == Gelu::erf) return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(Gelu kind, double x) {
  constexpr double kStep = 1e-5;
  return (gelu_of(kind, x + kStep) - gelu_of(kind, x - kStep)) / (2 * kStep);
}

/// A layer's linear, forward and both gradients, all by their definition.
template <class E, class G>
void expect_linear(bool transposed, bool adds, std::optional<Gelu> gelu, unsigned seed) {
  constexpr std::int64_t kRows = 19;
  constexpr std::int64_t kIn = 37;
  constexpr std::int64_t kOut = 34;
  host_cuda::set_seed(seed);
  // W^T is [in, out] whatever it is stored as; its memory has no elements beside.
  Matrix<E> turned(kIn, kOut, !transposed, seed);
  turned.stride = transposed ? kOut : kIn;
  const Matrix<E> x(kRows, kIn, false, seed + 1);
  const Matrix<E> d_y(kRows, kOut, false, seed + 2);
  const LinearShape s = {kRows, kIn, kOut, x.stride, kOut, transposed};
  const std::vector<E> bias = as<E>(random_floats(kOut, seed + 3));

  std::vector<E> y =
      adds ? as<E>(random_floats(kRows * kOut, seed + 4)) : unwritten<E>(kRows * kOut);
  std::vector<E> activated = unwritten<E>(kRows * kOut);
  Doubles expected = matrix_product(x, turned);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += to_float(bias[i % kOut]) + (adds ? to_float(y[i]) : 0.0F);
  }
  cuda::linear_forward(s, x.data.data(), turned.data.data(), bias.data(), y.data(), adds, gelu,
                       activated.data(), nullptr);
  expect_close(wide(y), expected, tolerance<E>(), "y");
  if (gelu) {
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = gelu_of(*gelu, to_float(y[i]));
    expect_close(wide(activated), expected, tolerance<E>(), "activated");
  }

  Matrix<E> weight = turned;
  std::swap(weight.rows, weight.columns);
  weight.transposed = transposed;
  std::vector<E> d_x =
      adds ? as<E>(random_floats(kRows * kIn, seed + 5)) : unwritten<E>(kRows * kIn);
  const std::vector<E> before = as<E>(random_floats(kRows * kIn, seed + 6));
  expected = matrix_product(d_y, weight);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (adds) expected[i] += to_float(d_x[i]);
    if (gelu) expected[i] *= gelu_slope(*gelu, to_float(before[i]));
  }
  cuda::linear_backward_input({kRows, kIn, kOut, kIn, d_y.stride, transposed}, d_y.data.data(),
                              turned.data.data(), d_x.data(), adds, gelu, before.data(), nullptr);
  expect_close(wide(d_x), expected, tolerance<E>(), "d_x");

  std::vector<G> d_weight = as<G>(random_floats(kIn * kOut, seed + 7));
  std::vector<G> d_bias = as<G>(random_floats(kOut, seed + 8));
  Matrix<E> left = transposed ? x : d_y;
  std::swap(left.rows, left.columns);
  left.transposed = true;
  expected = matrix_product(left, transposed ? d_y : x);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += to_float(d_weight[i]);
  Doubles sums = doubles(wide(d_bias));
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t i = 0; i < kOut; ++i) sums[static_cast<std::size_t>(i)] += d_y.at(r, i);
  }
  cuda::linear_backward_weight({kRows, kIn, kOut, x.stride, d_y.stride, transposed}, x.data.data(),
                               d_y.data.data(), d_weight.data(), d_bias.data(),
                               bias_workspace().data(), nullptr);
  expect_close(wide(d_weight), expected, tolerance<G>(), "d_weight");
  expect_close(wide(d_bias), sums, tolerance<G>(), "d_bias");
}

TEST(CudaLinear, EqualsItsDefinitionInEveryPrecision) {
  const std::optional<Gelu> kinds[] = {std::nullopt, Gelu::tanh, Gelu::erf};
  unsigned seed = 1;
  for (const std::optional<Gelu>& gelu : kinds) {
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(testing::Message() << transposed << gelu.has_value());
      expect_linear<float, float>(transposed, false, gelu, seed++);
      expect_linear<Bf16, float>(transposed, true, gelu, seed++);
      expect_linear<Bf16, Bf16>(transposed, false, gelu, seed++);
    }
  }
}

template <class E, class G>
void expect_bias_gradient(std::int64_t rows, std::int64_t width, std::int64_t stride,
                          unsigned seed) {
  const std::vector<E> d_y = as<E>(random_floats(rows * stride, seed));
  std::vector<G> d_bias = as<G>(random_floats(width, seed + 1));
  Doubles expected = doubles(wide(d_bias));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < width; ++i) {
      expected[static_cast<std::size_t>(i)] +=
          to_float(d_y[static_cast<std::size_t>(row * stride + i)]);
    }
  }
  std::vector<G> again = d_bias;
  std::vector<std::byte> workspace = bias_workspace();
  for (std::vector<G>* const each : {&d_bias, &again}) {
    host_cuda::set_seed(seed++);
    cuda::bias_gradient(rows, width, stride, d_y.data(), each->data(), workspace.data(), nullptr);
  }
  EXPECT_EQ(wide(d_bias), wide(again)) << "in another order of threads";
  expect_close(wide(d_bias), expected, tolerance<G>(), "d_bias");
}

TEST(CudaBiasGradient, SumsPartsOfManyRowsSideBySide) {
  for (const std::int64_t rows : {64, 65, 200, 4300}) {
    if (rows > 200 && host_cuda::races_are_watched()) continue;  // takes long
    SCOPED_TRACE(rows);
    expect_bias_gradient<float, float>(rows, 40, 40, 1);
    expect_bias_gradient<Bf16, float>(rows, 40, 43, 2);
    expect_bias_gradient<Bf16, Bf16>(rows, 33, 40, 3);
  }
}

TEST(CudaBiasGradient, NeedsItsBarrier) {
  expect_every_barrier_is_needed([] { expect_bias_gradient<float, float>(70, 40, 40, 1); });
}

}  // namespace
}  // namespace shardwise::exec
