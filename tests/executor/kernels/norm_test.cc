#include "executor/kernels/norm.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kNormRows = 5;
constexpr double kEpsilon = 1e-3;

/// One norm of `segments` runs of `width` in rows with something beside them.
struct Setting {
  bool rms;
  std::int64_t segments;
  std::int64_t width;
};

class Norm : public testing::TestWithParam<Setting> {
 protected:
  std::int64_t used() const { return GetParam().segments * GetParam().width; }
  NormShape shape() const {
    return {kNormRows, GetParam().segments,         GetParam().width, used() + 3,
            used(),    static_cast<float>(kEpsilon)};
  }

  /// From the definitions, over dense rows.
  Doubles reference(const Doubles& x, const Doubles& w, const Doubles& b) const {
    Doubles y;
    const auto n = static_cast<std::size_t>(GetParam().width);
    for (std::size_t first = 0; first < x.size(); first += n) {
      double mean = 0;
      double square = 0;
      for (std::size_t i = 0; i < n; ++i) mean += x[first + i] / static_cast<double>(n);
      if (GetParam().rms) mean = 0;
      for (std::size_t i = 0; i < n; ++i) {
        square += (x[first + i] - mean) * (x[first + i] - mean) / static_cast<double>(n);
      }
      for (std::size_t i = 0; i < n; ++i) {
        y.push_back((x[first + i] - mean) / std::sqrt(square + kEpsilon) * w[i] +
                    (GetParam().rms ? 0.0 : b[i]));
      }
    }
    return y;
  }

  Floats strided(const Floats& dense) const {
    Floats wide;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      wide.push_back(dense[i]);
      if ((i + 1) % static_cast<std::size_t>(used()) == 0) wide.insert(wide.end(), 3, 7.0F);
    }
    return wide;
  }

  const Floats x_ = random_floats(kNormRows * used(), 1);
  const Floats w_ = random_floats(GetParam().width, 2);
  const Floats b_ = random_floats(GetParam().width, 3);
  const Floats d_y_ = random_floats(kNormRows * used(), 4);
  Workers workers_{2};
};

TEST_P(Norm, EqualsItsDefinitionAndHasItsGradients) {
  const NormShape s = shape();
  const Floats wide = strided(x_);
  Floats y(x_.size());
  Floats statistics(static_cast<std::size_t>(2 * kNormRows * s.segments));
  Floats d_x = wide;  // added to
  Floats d_w(w_.size());
  Floats d_b(b_.size());
  if (GetParam().rms) {
    rms_norm_forward(s, wide.data(), w_.data(), y.data(), statistics.data(), workers_);
    rms_norm_backward(s, wide.data(), w_.data(), statistics.data(), d_y_.data(), d_x.data(), true,
                      d_w.data(), workers_);
  } else {
    layer_norm_forward(s, wide.data(), w_.data(), b_.data(), y.data(), statistics.data(), workers_);
    layer_norm_backward(s, wide.data(), w_.data(), statistics.data(), d_y_.data(), d_x.data(), true,
                        d_w.data(), d_b.data(), workers_);
  }
  const Doubles x = doubles(x_);
  const Doubles w = doubles(w_);
  const Doubles b = doubles(b_);
  const Doubles r = doubles(d_y_);
  expect_close(y, reference(x, w, b), kFp32Tolerance, "y");
  Doubles expected =
      numeric_gradient([&](const Doubles& v) { return dot(reference(v, w, b), r); }, x);
  Floats dense;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (i % static_cast<std::size_t>(s.x_stride) < static_cast<std::size_t>(used())) {
      dense.push_back(d_x[i]);
    } else {
      EXPECT_EQ(d_x[i], 7.0F) << "beside the rows, at " << i;
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += x[i];
  expect_close(dense, expected, kFp32Tolerance, "d_x");
  expect_close(d_w,
               numeric_gradient([&](const Doubles& v) { return dot(reference(x, v, b), r); }, w),
               kFp32Tolerance, "d_w");
  if (GetParam().rms) return;
  expect_close(d_b,
               numeric_gradient([&](const Doubles& v) { return dot(reference(x, w, v), r); }, b),
               kFp32Tolerance, "d_b");
}

TEST_P(Norm, PutsTheGradientInThePlaceOfTheOneItIsGiven) {
  if (!GetParam().rms) GTEST_SKIP() << "only heads are normed in place, by RMSNorm";
  NormShape s = shape();
  s.x_stride = s.y_stride = used();
  Floats y(x_.size());
  Floats statistics(static_cast<std::size_t>(kNormRows * s.segments));
  rms_norm_forward(s, x_.data(), w_.data(), y.data(), statistics.data(), workers_);
  Floats apart(x_.size());
  Floats d_w(w_.size());
  Floats in_place = d_y_;
  Floats d_w_in_place(w_.size());
  rms_norm_backward(s, x_.data(), w_.data(), statistics.data(), d_y_.data(), apart.data(), false,
                    d_w.data(), workers_);
  rms_norm_backward(s, x_.data(), w_.data(), statistics.data(), in_place.data(), in_place.data(),
                    false, d_w_in_place.data(), workers_);
  EXPECT_EQ(in_place, apart);
  EXPECT_EQ(d_w_in_place, d_w);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Norm,
                         testing::Values(Setting{true, 1, 20}, Setting{true, 3, 8},
                                         Setting{true, 1, 130}, Setting{false, 1, 20},
                                         Setting{false, 1, 130}));

}  // namespace
}  // namespace shardwise::exec
