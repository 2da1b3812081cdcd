#include "executor/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

/// softmax(Q K^T / sqrt(d)) V by definition, in double, whole.
class Reference {
 public:
  explicit Reference(const AttentionShape& s) : s_(s) {}

  Doubles operator()(const Doubles& qkv) const {
    Doubles out(static_cast<std::size_t>(s_.batch * s_.sequence * s_.heads * s_.head_dim));
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      for (std::int64_t h = 0; h < s_.heads; ++h) {
        for (std::int64_t i = 0; i < s_.sequence; ++i) row(qkv, b, h, i, out);
      }
    }
    return out;
  }

 private:
  double at(const Doubles& qkv, std::int64_t b, std::int64_t i, std::int64_t head,
            std::int64_t d) const {
    return qkv[static_cast<std::size_t>((b * s_.sequence + i) * s_.qkv_width() +
                                        head * s_.head_dim + d)];
  }
  void row(const Doubles& qkv, std::int64_t b, std::int64_t h, std::int64_t i, Doubles& out) const {
    const std::int64_t kv = h / (s_.heads / s_.kv_heads);
    const std::int64_t first = s_.window > 0 ? std::max<std::int64_t>(0, i - s_.window + 1) : 0;
    double sum = 0;
    Doubles values(static_cast<std::size_t>(s_.head_dim));
    for (std::int64_t j = first; j <= i; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < s_.head_dim; ++d) {
        score += at(qkv, b, i, h, d) * at(qkv, b, j, s_.heads + kv, d);
      }
      const double p = std::exp(score / std::sqrt(static_cast<double>(s_.head_dim)));
      sum += p;
      for (std::int64_t d = 0; d < s_.head_dim; ++d) {
        values[static_cast<std::size_t>(d)] += p * at(qkv, b, j, s_.heads + s_.kv_heads + kv, d);
      }
    }
    for (std::int64_t d = 0; d < s_.head_dim; ++d) {
      out[static_cast<std::size_t>(((b * s_.sequence + i) * s_.heads + h) * s_.head_dim + d)] =
          values[static_cast<std::size_t>(d)] / sum;
    }
  }

  AttentionShape s_;
};

template <class E>
struct Attended {
  std::vector<E> out;
  Floats log_sums;
  std::vector<E> gradient;
};

template <class E>
Attended<E> run(const AttentionShape& s, const std::vector<E>& qkv, const std::vector<E>& d_out,
                int threads) {
  Workers workers(threads);
  Attended<E> result{std::vector<E>(d_out.size()),
                     Floats(static_cast<std::size_t>(s.batch * s.heads * s.sequence)), qkv};
  attention_forward(s, qkv.data(), result.out.data(), result.log_sums.data(), workers);
  Floats workspace(static_cast<std::size_t>(attention_backward_bytes(s)) / sizeof(float));
  attention_backward(s, result.gradient.data(), result.out.data(), result.log_sums.data(),
                     d_out.data(), workspace.data(), workers);
  return result;
}

std::int64_t qkv_elements(const AttentionShape& s) { return s.batch * s.sequence * s.qkv_width(); }
std::int64_t out_elements(const AttentionShape& s) {
  return s.batch * s.sequence * s.heads * s.head_dim;
}

class Attention : public testing::TestWithParam<AttentionShape> {};

TEST_P(Attention, EqualsItsDefinitionAndHasItsGradients) {
  const AttentionShape& s = GetParam();
  Floats qkv = random_floats(qkv_elements(s), 1);
  for (float& each : qkv) each *= 2;
  const Floats d_out = random_floats(out_elements(s), 2);
  const Attended<float> actual = run(s, qkv, d_out, 2);
  const Reference reference(s);
  const Doubles r = doubles(d_out);
  expect_close(actual.out, reference(doubles(qkv)), kFp32Tolerance, "out");
  expect_close(
      actual.gradient,
      numeric_gradient([&](const Doubles& v) { return dot(reference(v), r); }, doubles(qkv)),
      kFp32Tolerance, "d_qkv");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(AttentionShape{1, 1, 1, 1, 2}, AttentionShape{2, 7, 2, 2, 4},
                    AttentionShape{1, 9, 4, 2, 4}, AttentionShape{1, 8, 3, 1, 6},
                    AttentionShape{1, 12, 2, 1, 4, 3}, AttentionShape{1, 6, 1, 1, 4, 100}));

// Several tiles of 128: too many numbers for differences, so that gradients are compared along a
// few directions.
class LongAttention : public testing::TestWithParam<AttentionShape> {};

TEST_P(LongAttention, EqualsItsDefinitionAcrossTiles) {
  const AttentionShape& s = GetParam();
  const Floats qkv = random_floats(qkv_elements(s), 1);
  const Floats d_out = random_floats(out_elements(s), 2);
  const Attended<float> actual = run(s, qkv, d_out, 2);
  const Reference reference(s);
  expect_close(actual.out, reference(doubles(qkv)), kFp32Tolerance, "out");
  for (const unsigned seed : {3U, 4U, 5U}) {
    const Doubles direction = doubles(random_floats(qkv_elements(s), seed));
    const auto along = [&](const Doubles& t) {
      Doubles moved = doubles(qkv);
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += t.front() * direction[i];
      return dot(reference(moved), doubles(d_out));
    };
    const double expected = numeric_gradient(along, {0.0}).front();
    double norm = 0;  // of the terms that are summed
    double sum = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      const double term = static_cast<double>(actual.gradient[i]) * direction[i];
      sum += term;
      norm += term * term;
    }
    EXPECT_NEAR(sum, expected, 1e-5 * std::sqrt(norm) + 1e-6) << seed;
  }
}

TEST_P(LongAttention, DoesNotDependOnTheNumberOfThreads) {
  const AttentionShape& s = GetParam();
  const Floats qkv = random_floats(qkv_elements(s), 1);
  const Floats d_out = random_floats(out_elements(s), 2);
  const Attended<float> one = run(s, qkv, d_out, 1);
  const Attended<float> three = run(s, qkv, d_out, 3);
  EXPECT_EQ(one.out, three.out);
  EXPECT_EQ(one.gradient, three.gradient);
}

TEST_P(LongAttention, RoundsInBf16WhatItStoresOnly) {
  const AttentionShape& s = GetParam();
  const std::vector<Bf16> qkv = rounded(random_floats(qkv_elements(s), 1));
  const std::vector<Bf16> d_out = rounded(random_floats(out_elements(s), 2));
  const Attended<Bf16> narrow = run(s, qkv, d_out, 2);
  const Attended<float> wide = run(s, widened(qkv), widened(d_out), 2);
  expect_close(widened(narrow.out), doubles(wide.out), kBf16Tolerance, "out");
  expect_close(widened(narrow.gradient), doubles(wide.gradient), kBf16Tolerance, "d_qkv");
}

INSTANTIATE_TEST_SUITE_P(Shapes, LongAttention,
                         testing::Values(AttentionShape{1, 300, 2, 1, 16},
                                         AttentionShape{2, 260, 2, 2, 8},
                                         AttentionShape{1, 400, 1, 1, 8, 130}));

}  // namespace
}  // namespace shardwise::exec
