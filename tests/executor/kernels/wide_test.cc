#include "executor/kernels/wide.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "executor/kernels/gelu.h"
#include "executor/kernels/products/cross_entropy.h"
#include "executor/kernels/swiglu.h"
#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

// A block, parts of one, and several with a short last one.
constexpr std::int64_t kLengths[] = {1, 15, 16, 255, 256, 257, 700};

void expect_same_bits(const std::vector<Bf16>& seen, const Floats& wide, const char* what) {
  for (std::size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i].bits, from_float<Bf16>(wide[i]).bits)
        << what << ' ' << i << " of " << seen.size();
  }
}

TEST(Wide, RunsRoundAsSingleNumbersDo) {
  // All upper halves, with lower halves around the tie.
  for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
    Floats values(1U << 16U);
    for (std::uint32_t high = 0; high < values.size(); ++high) {
      values[high] = std::bit_cast<float>(high << 16U | low);
    }
    std::vector<Bf16> seen(values.size());
    narrow_run(values.data(), std::ssize(values), seen.data());
    expect_same_bits(seen, values, "narrow_run");
    Floats again(values.size());
    widen_run(seen.data(), std::ssize(seen), again.data());
    for (std::size_t i = 0; i < again.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(again[i]), std::uint32_t{seen[i].bits} << 16U);
    }
  }
}

TEST(Wide, KernelsOfBf16RoundWhatThoseOfFp32Make) {
  Workers workers(1);
  for (const std::int64_t count : kLengths) {
    const auto size = static_cast<std::size_t>(count);
    const std::vector<Bf16> x = rounded(random_floats(2 * count, 1));
    const std::vector<Bf16> d_y = rounded(random_floats(count, 2));
    std::vector<Bf16> y(size);
    Floats wide_x = widened(x);
    const Floats wide_d_y = widened(d_y);
    Floats wide_y(size);

    gelu_forward(Gelu::tanh, count, x.data(), y.data(), workers);
    gelu_forward(Gelu::tanh, count, wide_x.data(), wide_y.data(), workers);
    expect_same_bits(y, wide_y, "gelu");
    gelu_backward(Gelu::tanh, count, x.data(), d_y.data(), y.data(), workers);
    gelu_backward(Gelu::tanh, count, wide_x.data(), wide_d_y.data(), wide_y.data(), workers);
    expect_same_bits(y, wide_y, "gradient of gelu");

    swiglu_forward(1, count, x.data(), y.data(), workers);
    swiglu_forward(1, count, wide_x.data(), wide_y.data(), workers);
    expect_same_bits(y, wide_y, "swiglu");
    std::vector<Bf16> d_x = x;
    swiglu_backward(1, count, d_x.data(), d_y.data(), workers);
    swiglu_backward(1, count, wide_x.data(), wide_d_y.data(), workers);
    expect_same_bits(d_x, wide_x, "gradient of swiglu");

    std::vector<Bf16> logits = d_y;
    Floats wide_logits = wide_d_y;
    const std::int64_t target = count / 2;
    float loss = 0;
    float wide_loss = 0;
    loss_rows(1, count, &target, 0.25F, logits.data(), &loss, workers);
    loss_rows(1, count, &target, 0.25F, wide_logits.data(), &wide_loss, workers);
    EXPECT_EQ(loss, wide_loss);
    expect_same_bits(logits, wide_logits, "gradient of the loss");
  }
}

}  // namespace
}  // namespace shardwise::exec
