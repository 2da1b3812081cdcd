#include "executor/kernels/tensor_view.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "executor/kernels/element.h"

namespace shardwise::exec {
namespace {

/// Ties, an infinity, what is not a number, and others.
std::vector<float> values(std::size_t count) {
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i) {
    made[i] = std::sin(static_cast<float>(i)) * std::ldexp(1.0F, static_cast<int>(i % 40) - 20);
    if (i % 11 == 3) made[i] = 1.0F + 0x1p-8F * static_cast<float>(i);
    if (i % 23 == 7) made[i] = INFINITY;
    if (i % 29 == 5) made[i] = NAN;
  }
  return made;
}

TensorView narrow(void* at, std::size_t count) {
  return {static_cast<std::byte*>(at), count, DType::bf16};
}

TEST(Cast, RoundsAndWidensAsElementsDo) {
  for (const std::size_t count : {0U, 1U, 7U, 16U, 33U, 1000U}) {
    const std::vector<float> from = values(count);
    std::vector<Bf16> rounded(count);
    cast(narrow(rounded.data(), count), from);
    std::vector<float> wide(count);
    cast(wide, narrow(rounded.data(), count));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(rounded[i].bits, from_float<Bf16>(from[i]).bits) << i;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(to_float(rounded[i])));
    }
  }
}

TEST(Cast, NarrowsAndWidensInPlace) {
  const std::vector<float> from = values(1000);
  std::vector<float> place = from;
  const TensorView half = narrow(place.data(), place.size());
  cast(half, place);
  cast(place, half);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const float expected = to_float(from_float<Bf16>(from[i]));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(place[i]), std::bit_cast<std::uint32_t>(expected)) << i;
  }
}

}  // namespace
}  // namespace shardwise::exec
