#pragma once

#include <bit>
#include <cstdint>

#include "executor/kernels/cuda/device_code/device.h"

namespace shardwise::exec::cuda {

/// Division by a number that a kernel is given, of numbers from 0 on: by a product and a shift
/// where they are below 2^31, as a division of 64 bits takes some hundred instructions.
///
/// With s the least power of two not below d and m = ceil(2^31 s / d), n m / (2^31 s) is n / d and
/// less than n / 2^31 / d more, which does not reach the next whole number.
/// Source: Granlund, Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994,
/// theorem 4.2.
class Divisor {
 public:
  /// \param by  1 or more  \param limit  what is divided is below it
  Divisor(std::int64_t by, std::int64_t limit) : by_(by) {
    constexpr std::int64_t kNarrow = std::int64_t{1} << kBits;
    if (limit > kNarrow || by > kNarrow) return;
    const auto divisor = static_cast<std::uint64_t>(by);
    shift_ = kBits + static_cast<int>(std::bit_width(divisor - 1));
    multiplier_ = static_cast<std::uint32_t>(
        ((std::uint64_t{1} << static_cast<unsigned>(shift_)) + divisor - 1) / divisor);
  }

  __device__ std::int64_t quotient(std::int64_t n) const {
    if (shift_ == 0) return n / by_;
    const std::uint64_t product = std::uint64_t{static_cast<std::uint32_t>(n)} * multiplier_;
    return static_cast<std::int64_t>(product >> static_cast<unsigned>(shift_));
  }
  /// Quotient and remainder.
  struct Parts {
    std::int64_t quotient;
    std::int64_t remainder;
  };
  __device__ Parts parts(std::int64_t n) const {
    const std::int64_t whole = quotient(n);
    return {whole, n - whole * by_};
  }

 private:
  static constexpr int kBits = 31;
  std::int64_t by_;
  std::uint32_t multiplier_ = 0;
  int shift_ = 0;  // 0: what is divided may be larger
};

}  // namespace shardwise::exec::cuda
