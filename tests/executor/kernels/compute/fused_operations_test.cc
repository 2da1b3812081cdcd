// An operation that is several in one gives the bits of these, one after the other.
#include <gtest/gtest.h>

#include <vector>

#include "tests/executor/kernels/compute/cpu_compute_of.h"

namespace shardwise::exec::test {
namespace {

template <class T>
class FusedOnCpu : public CpuComputeOf<T> {};
TYPED_TEST_SUITE(FusedOnCpu, AllTypes, TypeNames);

TYPED_TEST(FusedOnCpu, NormWithItsCopyGivesTheBitsOfCopyAndKernel) {
  using E = typename TestFixture::Element;
  for (const bool rms : {true, false}) {
    std::vector<E> x = this->elements(kRows * kIn, 1);
    std::vector<E> weight = this->elements(kIn, 2);
    std::vector<E> bias = this->elements(kIn, 3);
    const NormShape shape = {kRows, 1, kIn, kIn, kIn, 1e-5F};
    std::vector<E> y(x.size());
    std::vector<E> kept(x.size());
    Floats statistics(2 * kRows);
    this->compute_.norm({.shape = shape,
                         .rms = rms,
                         .dtype = this->kDType,
                         .x = bytes(x),
                         .kept = bytes(kept),
                         .weight = bytes(weight),
                         .bias = bytes(bias),
                         .y = bytes(y),
                         .statistics = statistics.data()},
                        this->stream_);
    std::vector<E> expected(x.size());
    Floats its_statistics(2 * kRows);
    if (rms) {
      rms_norm_forward(shape, x.data(), weight.data(), expected.data(), its_statistics.data(),
                       this->workers_);
    } else {
      layer_norm_forward(shape, x.data(), weight.data(), bias.data(), expected.data(),
                         its_statistics.data(), this->workers_);
    }
    expect_bits(y, expected, "y");
    expect_bits(kept, x, "kept");
    expect_bits(statistics, its_statistics, "statistics");
  }
}

TYPED_TEST(FusedOnCpu, ProductWithBiasAndGeluGivesTheBitsOfProductThenGelu) {
  using E = typename TestFixture::Element;
  for (const Gelu kind : {Gelu::tanh, Gelu::erf}) {
    std::vector<E> x = this->elements(kRows * kIn, 1);
    std::vector<E> weight = this->elements(kIn * kOut, 2);
    std::vector<E> bias = this->elements(kOut, 3);
    const LinearShape shape = {kRows, kIn, kOut, kIn, kOut, true};
    std::vector<E> y(kRows * kOut);
    std::vector<E> activated(y.size());
    this->compute_.linear({.shape = shape,
                           .dtype = this->kDType,
                           .x = bytes(x),
                           .weight = bytes(weight),
                           .bias = bytes(bias),
                           .y = bytes(y),
                           .gelu = kind,
                           .activated = bytes(activated)},
                          this->stream_);
    std::vector<E> before(y.size());
    std::vector<E> after(y.size());
    linear_forward(shape, x.data(), weight.data(), bias.data(), before.data(), false,
                   this->workers_);
    gelu_forward<E>(kind, kRows * kOut, before.data(), after.data(), this->workers_);
    expect_bits(y, before, "y");
    expect_bits(activated, after, "activated");
  }
}

TYPED_TEST(FusedOnCpu, InputGradientWithGelusGivesTheBitsOfBothInTurn) {
  using E = typename TestFixture::Element;
  for (const Gelu kind : {Gelu::tanh, Gelu::erf}) {
    for (const bool adds : {false, true}) {
      std::vector<E> d_y = this->elements(kRows * kOut, 1);
      std::vector<E> weight = this->elements(kIn * kOut, 2);
      std::vector<E> before = this->elements(kRows * kIn, 3);
      std::vector<E> d_x = this->elements(kRows * kIn, 4);
      std::vector<E> expected = d_x;
      const LinearShape shape = {kRows, kIn, kOut, kIn, kOut, false};
      this->compute_.linear_backward_input({.shape = shape,
                                            .dtype = this->kDType,
                                            .d_y = bytes(d_y),
                                            .weight = bytes(weight),
                                            .d_x = bytes(d_x),
                                            .adds = adds,
                                            .gelu = kind,
                                            .before = bytes(before)},
                                           this->stream_);
      linear_backward_input(shape, d_y.data(), weight.data(), expected.data(), adds,
                            this->workers_);
      // As a pass of its own, in the place of what gelu was applied to.
      gelu_backward<E>(kind, kRows * kIn, before.data(), expected.data(), before.data(),
                       this->workers_);
      expect_bits(d_x, before, "d_x");
    }
  }
}

TYPED_TEST(FusedOnCpu, WeightGradientWithBiasGivesTheBitsOfItsKernel) {
  using E = typename TestFixture::Element;
  using G = typename TestFixture::Gradient;
  for (const bool transposed : {false, true}) {
    std::vector<E> x = this->elements(kRows * kIn, 1);
    std::vector<E> d_y = this->elements(kRows * kWide, 2);
    std::vector<G> d_weight = this->gradients(kIn * kOut, 3);
    std::vector<G> d_bias = this->gradients(kOut, 4);
    std::vector<G> its_weight = d_weight;
    std::vector<G> its_bias = d_bias;
    const LinearShape shape = {kRows, kIn, kOut, kIn, kWide, transposed};
    this->compute_.linear_backward_weight({.shape = shape,
                                           .dtype = this->kDType,
                                           .gradient = this->kGradient,
                                           .x = bytes(x),
                                           .d_y = bytes(d_y),
                                           .d_weight = bytes(d_weight),
                                           .d_bias = bytes(d_bias)},
                                          this->stream_);
    linear_backward_weight(shape, x.data(), d_y.data(), its_weight.data(), its_bias.data(),
                           this->workers_);
    expect_bits(d_weight, its_weight, "d_weight");
    expect_bits(d_bias, its_bias, "d_bias");
  }
}

}  // namespace
}  // namespace shardwise::exec::test
