#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shardwise::exec {

/// The sum of the squares of floats, without rounding: the same for every order in which they are
/// added, so a gradient's norm does not depend on which rank holds which element.
///
/// The mantissa of a float is an integer below 2^24 and its square below 2^48: squares of floats of
/// one exponent add up exactly in an integer of 128 bits, and there are 256 exponents.
class ExactSquares {
 public:
  void add(std::span<const float> values);
  void add(const ExactSquares& other);

  /// The root of the sum; infinite or not a number as soon as one value is, of which NaN wins.
  double norm() const;
  bool finite() const;

  /// Size as bytes that ranks exchange.
  static constexpr std::size_t kBytes = 512 * sizeof(std::uint64_t);
  std::span<const std::byte, kBytes> bytes() const;
  static ExactSquares from_bytes(std::span<const std::byte, kBytes> bytes);

 private:
  std::array<std::uint64_t, 512> sums_{};  // by exponent: the low and the high half
};

}  // namespace shardwise::exec
