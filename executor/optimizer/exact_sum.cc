#include "executor/optimizer/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace shardwise::exec {
namespace {

constexpr std::uint32_t kMantissa = (1U << 23) - 1;
constexpr std::size_t kSpecial = 255;  // exponent of infinities and of what is not a number
/// Added to the high half of kSpecial for a block that has a NaN: infinities alone do not get
/// there.
constexpr std::uint64_t kNan = std::uint64_t{1} << 40;

/// 65,536 squares below 2^48 fit 64 bits.
constexpr std::size_t kExactBlock = 65'536;

/// Sums that neighbouring elements go to.
constexpr std::size_t kWays = 8;

inline void add_square(float value, std::array<std::uint64_t, 256>& sums) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23) & 255U;
  const std::uint64_t mantissa = (bits & kMantissa) | (exponent > 0 ? kMantissa + 1 : 0U);
  sums[exponent] += mantissa * mantissa;
}

void add_wide(std::uint64_t& low, std::uint64_t& high, std::uint64_t add_low,
              std::uint64_t add_high) {
  low += add_low;
  high += add_high + (low < add_low ? 1 : 0);
}

}  // namespace

void ExactSquares::add(std::span<const float> values) {
  for (std::size_t at = 0; at < values.size(); at += kExactBlock) {
    // Neighbours have sums of their own: gradients are much alike, and to add to what was just
    // stored takes longer than the rest.
    std::array<std::array<std::uint64_t, 256>, kWays> block{};
    const std::size_t end = std::min(values.size(), at + kExactBlock);
    std::size_t i = at;
    for (; i + kWays <= end; i += kWays) {
      for (std::size_t way = 0; way < kWays; ++way) add_square(values[i + way], block[way]);
    }
    for (; i < end; ++i) add_square(values[i], block[0]);
    const bool special =
        std::ranges::any_of(block, [](const auto& way) { return way[kSpecial] > 0; });
    if (special && std::ranges::any_of(values.subspan(at, end - at),
                                       [](float value) { return std::isnan(value); })) {
      sums_[2 * kSpecial + 1] += kNan;
    }
    for (const auto& way : block) {
      for (std::size_t e = 0; e < way.size(); ++e) {
        add_wide(sums_[2 * e], sums_[2 * e + 1], way[e], 0);
      }
    }
  }
}

void ExactSquares::add(const ExactSquares& other) {
  for (std::size_t e = 0; e < 256; ++e) {
    add_wide(sums_[2 * e], sums_[2 * e + 1], other.sums_[2 * e], other.sums_[2 * e + 1]);
  }
}

bool ExactSquares::finite() const {
  return sums_[2 * kSpecial] == 0 && sums_[2 * kSpecial + 1] == 0;
}

double ExactSquares::norm() const {
  if (sums_[2 * kSpecial + 1] >= kNan) return std::numeric_limits<double>::quiet_NaN();
  if (!finite()) return std::numeric_limits<double>::infinity();
  // From the smallest to the largest: one rounding each, in an order that is always the same. A
  // value of exponent e is mantissa x 2^(max(e, 1) - 150).
  double sum = 0;
  for (int e = 0; e < static_cast<int>(kSpecial); ++e) {
    const auto at = 2 * static_cast<std::size_t>(e);
    const double whole =
        static_cast<double>(sums_[at]) + std::ldexp(static_cast<double>(sums_[at + 1]), 64);
    if (whole > 0) sum += std::ldexp(whole, 2 * (std::max(e, 1) - 150));
  }
  return std::sqrt(sum);
}

std::span<const std::byte, ExactSquares::kBytes> ExactSquares::bytes() const {
  return std::as_bytes(std::span<const std::uint64_t, 512>(sums_));
}

ExactSquares ExactSquares::from_bytes(std::span<const std::byte, kBytes> bytes) {
  ExactSquares sum;
  std::memcpy(sum.sums_.data(), bytes.data(), kBytes);
  return sum;
}

}  // namespace shardwise::exec
