// Host and device divide by the same code.
#include "executor/kernels/cuda/device_code/divisor.h"

#include <gtest/gtest.h>

#include <random>

namespace shardwise::exec::cuda {
namespace {

void expect_parts(std::int64_t n, std::int64_t by, std::int64_t limit) {
  const Divisor::Parts parts = Divisor(by, limit).parts(n);
  ASSERT_EQ(parts.quotient, n / by) << n << " / " << by;
  ASSERT_EQ(parts.remainder, n % by) << n << " % " << by;
}

constexpr std::int64_t kNarrow = std::int64_t{1} << 31;

TEST(Divisor, DividesNumbersAtBothEndsOfAQuotient) {
  std::mt19937_64 draw(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::int64_t by = 1 + static_cast<std::int64_t>(draw() >> (33 + i % 31));
    const std::int64_t whole = static_cast<std::int64_t>(draw() >> 33) / by * by;
    expect_parts(whole, by, kNarrow);
    if (whole > 0) expect_parts(whole - 1, by, kNarrow);
    expect_parts(kNarrow - 1, by, kNarrow);
  }
  for (const std::int64_t by : {kNarrow, kNarrow - 1, kNarrow / 2 + 1, kNarrow / 2}) {
    for (const std::int64_t n : {kNarrow - 1, kNarrow - 2, kNarrow / 2, std::int64_t{0}}) {
      expect_parts(n, by, kNarrow);
    }
  }
}

TEST(Divisor, DividesNumbersOfMoreThan31BitsWhereItIsToldThatThereAreSome) {
  for (const std::int64_t n : {kNarrow, 3 * kNarrow + 5, std::int64_t{1} << 40}) {
    expect_parts(n, 7, n + 1);
    expect_parts(n, 2 * kNarrow + 1, n + 1);
  }
}

}  // namespace
}  // namespace shardwise::exec::cuda
