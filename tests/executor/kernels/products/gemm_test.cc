#include "executor/kernels/products/gemm.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

struct Case {
  GemmShape shape;
  bool a_transposed;
  bool b_transposed;
  bool adds;
};

double at(const Floats& m, std::int64_t stride, bool transposed, std::int64_t row,
          std::int64_t column) {
  return static_cast<double>(
      m[static_cast<std::size_t>(transposed ? column * stride + row : row * stride + column)]);
}

class Gemm : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [s, ta, tb, adds] = GetParam();
    a_stride_ = (ta ? s.m : s.k) + 3;
    b_stride_ = (tb ? s.k : s.n) + 1;
    c_stride_ = s.n + 2;
    a_ = widened(rounded(random_floats((ta ? s.k : s.m) * a_stride_, 1)));
    b_ = widened(rounded(random_floats((tb ? s.n : s.k) * b_stride_, 2)));
    c_ = widened(rounded(random_floats(s.m * c_stride_, 3)));
    for (const float each : c_) expected_.push_back(static_cast<double>(each));
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double& c = expected_[static_cast<std::size_t>(i * c_stride_ + j)];
        if (!adds) c = 0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          c += at(a_, a_stride_, ta, i, k) * at(b_, b_stride_, tb, k, j);
        }
      }
    }
  }

  std::int64_t a_stride_ = 0;
  std::int64_t b_stride_ = 0;
  std::int64_t c_stride_ = 0;
  Floats a_;
  Floats b_;
  Floats c_;
  Doubles expected_;
};

TEST_P(Gemm, EqualsTheSumOfProductsAndLeavesWhatIsBesideAlone) {
  const auto& [s, ta, tb, adds] = GetParam();
  Workers workers(2);
  gemm<float, float, float>(s, {a_.data(), a_stride_, ta}, {b_.data(), b_stride_, tb},
                            {c_.data(), c_stride_}, adds, workers);
  expect_close(c_, expected_, kFp32Tolerance, "c");
}

TEST_P(Gemm, ReadsBf16AndRoundsOnce) {
  const auto& [s, ta, tb, adds] = GetParam();
  Workers workers(2);
  const std::vector<Bf16> a = rounded(a_);
  const std::vector<Bf16> b = rounded(b_);
  std::vector<Bf16> narrow = rounded(c_);
  gemm<Bf16, Bf16, float>(s, {a.data(), a_stride_, ta}, {b.data(), b_stride_, tb},
                          {c_.data(), c_stride_}, adds, workers);
  expect_close(c_, expected_, kFp32Tolerance, "fp32 c");
  gemm<Bf16, Bf16, Bf16>(s, {a.data(), a_stride_, ta}, {b.data(), b_stride_, tb},
                         {narrow.data(), c_stride_}, adds, workers);
  expect_close(widened(narrow), expected_, 0x1p-8, "bf16 c");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Gemm,
    testing::Values(Case{{5, 7, 3}, false, false, false}, Case{{5, 7, 3}, true, false, true},
                    Case{{5, 7, 3}, false, true, true}, Case{{5, 7, 3}, true, true, false},
                    Case{{1, 1, 1}, false, false, true}, Case{{600, 530, 20}, false, true, false},
                    Case{{200, 300, 700}, true, false, true},
                    Case{{1, 257, 300}, false, false, true},
                    Case{{259, 1, 64}, true, true, false}));

TEST(GemmDeterminism, DoesNotDependOnTheNumberOfThreads) {
  const GemmShape s = {300, 700, 200};
  const Floats a = random_floats(s.m * s.k, 1);
  const Floats b = random_floats(s.k * s.n, 2);
  Floats one(static_cast<std::size_t>(s.m * s.n));
  for (const int threads : {1, 2, 3}) {
    Workers workers(threads);
    Floats c(one.size());
    gemm<float, float, float>(s, {a.data(), s.k}, {b.data(), s.n}, {c.data(), s.n}, false, workers);
    if (threads == 1) one = c;
    EXPECT_EQ(c, one) << threads;
  }
}

TEST(GemmDeterminism, OfBf16DoesNotDependOnTheNumberOfThreads) {
  const GemmShape s = {300, 700, 200};
  const std::vector<Bf16> a = rounded(random_floats(s.m * s.k, 1));
  const std::vector<Bf16> b = rounded(random_floats(s.k * s.n, 2));
  const std::vector<Bf16> before = rounded(random_floats(s.m * s.n, 3));
  Floats one;
  for (const int threads : {1, 2, 3}) {
    Workers workers(threads);
    std::vector<Bf16> c = before;
    gemm<Bf16, Bf16, Bf16>(s, {a.data(), s.k}, {b.data(), s.n}, {c.data(), s.n}, true, workers);
    if (threads == 1) one = widened(c);
    EXPECT_EQ(widened(c), one) << threads;
  }
}

}  // namespace
}  // namespace shardwise::exec
