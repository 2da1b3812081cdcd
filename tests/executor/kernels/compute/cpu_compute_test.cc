// Each operation of the CPU gives the bits of its kernel.
#include <gtest/gtest.h>

#include <vector>

#include "executor/kernels/swiglu.h"
#include "tests/executor/kernels/compute/cpu_compute_of.h"

namespace shardwise::exec::test {
namespace {

TYPED_TEST_SUITE(CpuComputeOf, AllTypes, TypeNames);

TYPED_TEST(CpuComputeOf, NormBackwardGivesTheBitsOfItsKernel) {
  using E = typename TestFixture::Element;
  using G = typename TestFixture::Gradient;
  for (const bool rms : {true, false}) {
    std::vector<E> x = this->elements(kRows * kIn, 1);
    std::vector<E> weight = this->elements(kIn, 2);
    std::vector<E> d_y = this->elements(kRows * kIn, 3);
    Floats statistics = random_floats(2 * kRows, 4);
    std::vector<E> d_x = this->elements(kRows * kIn, 5);
    std::vector<G> d_weight = this->gradients(kIn, 6);
    std::vector<G> d_bias = this->gradients(kIn, 7);
    std::vector<E> expected = d_x;
    std::vector<G> its_weight = d_weight;
    std::vector<G> its_bias = d_bias;
    const NormShape shape = {kRows, 1, kIn, kIn, kIn, 1e-5F};
    this->compute_.norm_backward({.shape = shape,
                                  .rms = rms,
                                  .dtype = this->kDType,
                                  .gradient = this->kGradient,
                                  .x = bytes(x),
                                  .weight = bytes(weight),
                                  .statistics = statistics.data(),
                                  .d_y = bytes(d_y),
                                  .d_x = bytes(d_x),
                                  .adds = true,
                                  .d_weight = bytes(d_weight),
                                  .d_bias = bytes(d_bias)},
                                 this->stream_);
    if (rms) {
      rms_norm_backward(shape, x.data(), weight.data(), statistics.data(), d_y.data(),
                        expected.data(), true, its_weight.data(), this->workers_);
    } else {
      layer_norm_backward(shape, x.data(), weight.data(), statistics.data(), d_y.data(),
                          expected.data(), true, its_weight.data(), its_bias.data(),
                          this->workers_);
    }
    expect_bits(d_x, expected, "d_x");
    expect_bits(d_weight, its_weight, "d_weight");
    expect_bits(d_bias, its_bias, "d_bias");
  }
}

TYPED_TEST(CpuComputeOf, ProductAddsToColumnsOfAWiderTensor) {
  using E = typename TestFixture::Element;
  std::vector<E> x = this->elements(kRows * kIn, 1);
  std::vector<E> weight = this->elements(kIn * kOut, 2);
  const LinearShape shape = {kRows, kIn, kOut, kIn, kWide, false};
  std::vector<E> y = this->elements(kRows * kWide, 3);
  std::vector<E> expected = y;
  this->compute_.linear({.shape = shape,
                         .dtype = this->kDType,
                         .x = bytes(x),
                         .weight = bytes(weight),
                         .y = bytes(y),
                         .adds = true},
                        this->stream_);
  linear_forward<E>(shape, x.data(), weight.data(), nullptr, expected.data(), true, this->workers_);
  expect_bits(y, expected, "y");
}

TYPED_TEST(CpuComputeOf, RopeTurnsForthAndBackAsItsKernels) {
  using E = typename TestFixture::Element;
  const RopeShape shape = {2, 5, 3, 8, 3 * 8 + 4};
  const Doubles frequencies = {1, 0.1, 0.01, 0.001};
  Floats cosines(20);  // 5 positions, 4 pairs
  Floats sines(cosines.size());
  this->compute_.rope_tables(
      {.sequence = 5, .frequencies = frequencies, .cosines = cosines.data(), .sines = sines.data()},
      this->stream_);
  Floats its_cosines(cosines.size());
  Floats its_sines(sines.size());
  rope_tables(5, 8, frequencies.data(), its_cosines.data(), its_sines.data());
  expect_bits(cosines, its_cosines, "cosines");
  expect_bits(sines, its_sines, "sines");
  const RopeTables tables = {cosines.data(), sines.data()};
  for (const bool backward : {false, true}) {
    std::vector<E> x = this->elements(shape.batch * shape.sequence * shape.stride, 1);
    std::vector<E> expected = x;
    this->compute_.rope({.shape = shape,
                         .dtype = this->kDType,
                         .tables = tables,
                         .x = bytes(x),
                         .backward = backward},
                        this->stream_);
    if (backward) {
      rope_backward(shape, tables, expected.data(), this->workers_);
    } else {
      rope_forward(shape, tables, expected.data(), this->workers_);
    }
    expect_bits(x, expected, backward ? "backward" : "forward");
  }
}

TYPED_TEST(CpuComputeOf, AttentionGivesTheBitsOfItsKernels) {
  using E = typename TestFixture::Element;
  const AttentionShape shape = {2, 13, 4, 2, 8, 5};
  std::vector<E> qkv = this->elements(shape.batch * shape.sequence * shape.qkv_width(), 1);
  std::vector<E> out(static_cast<std::size_t>(2 * 13 * 4 * 8));
  Floats log_sums(static_cast<std::size_t>(2 * 4 * 13));
  this->compute_.attention({.shape = shape,
                            .dtype = this->kDType,
                            .qkv = bytes(qkv),
                            .out = bytes(out),
                            .log_sums = log_sums.data()},
                           this->stream_);
  std::vector<E> its_out(out.size());
  Floats its_sums(log_sums.size());
  attention_forward(shape, qkv.data(), its_out.data(), its_sums.data(), this->workers_);
  expect_bits(out, its_out, "out");
  expect_bits(log_sums, its_sums, "log_sums");
  std::vector<E> d_out = this->elements(std::ssize(out), 2);
  std::vector<E> expected = qkv;
  Floats workspace(static_cast<std::size_t>(attention_backward_bytes(shape)) / sizeof(float));
  attention_backward(shape, expected.data(), out.data(), log_sums.data(), d_out.data(),
                     workspace.data(), this->workers_);
  this->compute_.attention_backward({.shape = shape,
                                     .dtype = this->kDType,
                                     .qkv = bytes(qkv),
                                     .out = bytes(out),
                                     .log_sums = log_sums.data(),
                                     .d_out = bytes(d_out),
                                     .workspace = bytes(workspace)},
                                    this->stream_);
  expect_bits(qkv, expected, "gradients");
}

TYPED_TEST(CpuComputeOf, ActivationsGiveTheBitsOfTheirKernels) {
  using E = typename TestFixture::Element;
  std::vector<E> x = this->elements(kRows * 2 * kIn, 1);
  std::vector<E> y(kRows * kIn);
  std::vector<E> expected(y.size());
  this->compute_.gelu({.kind = Gelu::erf,
                       .count = kRows * kIn,
                       .dtype = this->kDType,
                       .x = bytes(x),
                       .y = bytes(y)},
                      this->stream_);
  gelu_forward<E>(Gelu::erf, kRows * kIn, x.data(), expected.data(), this->workers_);
  expect_bits(y, expected, "gelu");
  this->compute_.swiglu(
      {.rows = kRows, .width = kIn, .dtype = this->kDType, .gate_up = bytes(x), .y = bytes(y)},
      this->stream_);
  swiglu_forward<E>(kRows, kIn, x.data(), expected.data(), this->workers_);
  expect_bits(y, expected, "swiglu");
  std::vector<E> gradient = x;
  this->compute_.swiglu_backward({.rows = kRows,
                                  .width = kIn,
                                  .dtype = this->kDType,
                                  .gate_up = bytes(gradient),
                                  .d_y = bytes(y)},
                                 this->stream_);
  swiglu_backward<E>(kRows, kIn, x.data(), y.data(), this->workers_);
  expect_bits(gradient, x, "gradient of swiglu");
}

TYPED_TEST(CpuComputeOf, EmbeddingKeepsItsTokensAndGivesTheBitsOfItsKernels) {
  using E = typename TestFixture::Element;
  using G = typename TestFixture::Gradient;
  const EmbeddingShape shape = {2, 5, kIn};
  const std::vector<std::int64_t> tokens = {3, 1, 3, 0, 6, 6, 2, 3, 5, 1};
  std::vector<E> table = this->elements(7 * kIn, 1);
  std::vector<E> positions = this->elements(6 * kIn, 2);
  std::vector<E> y(10 * kIn);
  std::vector<E> expected(y.size());
  std::vector<std::int64_t> kept(tokens.size());
  this->compute_.embedding({.shape = shape,
                            .dtype = this->kDType,
                            .tokens = tokens.data(),
                            .kept = kept.data(),
                            .table = bytes(table),
                            .positions = bytes(positions),
                            .y = bytes(y)},
                           this->stream_);
  embedding_forward<E>(shape, tokens.data(), table.data(), positions.data(), expected.data(),
                       this->workers_);
  expect_bits(y, expected, "y");
  EXPECT_EQ(kept, tokens);
  std::vector<G> d_table = this->gradients(7 * kIn, 3);
  std::vector<G> d_positions = this->gradients(6 * kIn, 4);
  std::vector<G> its_table = d_table;
  std::vector<G> its_positions = d_positions;
  this->compute_.embedding_backward({.shape = shape,
                                     .dtype = this->kDType,
                                     .gradient = this->kGradient,
                                     .tokens = kept.data(),
                                     .d_y = bytes(y),
                                     .d_table = bytes(d_table),
                                     .d_positions = bytes(d_positions)},
                                    this->stream_);
  embedding_backward<E, G>(shape, tokens.data(), y.data(), its_table.data(), its_positions.data(),
                           this->workers_);
  expect_bits(d_table, its_table, "d_table");
  expect_bits(d_positions, its_positions, "d_positions");
}

TYPED_TEST(CpuComputeOf, HeadReadsItsScaleAndAddsToTheLossAsItsKernel) {
  using E = typename TestFixture::Element;
  using G = typename TestFixture::Gradient;
  const CrossEntropyShape shape = {11, kIn, 31, 4};
  std::vector<E> x = this->elements(11 * kIn, 1);
  std::vector<E> weight = this->elements(31 * kIn, 2);
  std::vector<std::int64_t> targets;
  for (std::int64_t i = 0; i < 11; ++i) targets.push_back(i % 4 == 2 ? kIgnored : i * 7 % 31);
  std::vector<G> d_weight = this->gradients(31 * kIn, 3);
  std::vector<E> expected = x;
  std::vector<G> its_weight = d_weight;
  const float scale = 0.25F;
  LossSum loss = {1.5, 3};
  LossSum its_loss = loss;
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(cross_entropy_bytes(shape, this->kDType)));
  this->compute_.head({.shape = shape,
                       .dtype = this->kDType,
                       .gradient = this->kGradient,
                       .x = bytes(x),
                       .weight = bytes(weight),
                       .targets = targets.data(),
                       .scale = &scale,
                       .d_weight = bytes(d_weight),
                       .loss = &loss,
                       .workspace = workspace.data()},
                      this->stream_);
  cross_entropy<E, G>(shape, expected.data(), weight.data(), targets.data(), scale,
                      its_weight.data(), its_loss, workspace.data(), this->workers_);
  expect_bits(x, expected, "x");
  expect_bits(d_weight, its_weight, "d_weight");
  EXPECT_EQ(loss.loss, its_loss.loss);
  EXPECT_EQ(loss.tokens, 3 + 8);
}

}  // namespace
}  // namespace shardwise::exec::test
