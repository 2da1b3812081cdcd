#pragma once

#include <compare>
#include <cstdint>

namespace shardwise {

/// A number with a unit. Quantities of different units do not mix: adding Bytes to Seconds does not
/// compile. `value()` is in the base unit: bytes, seconds, floating-point operations.
template <class Tag, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) {
    return Quantity(a.value_ * factor);
  }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) {
    return Quantity(a.value_ / divisor);
  }
  /// How many times `b` goes into `a`; a plain number.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  Rep value_ = 0;
};

/// Exact. A ledger of Bytes adds up to the last byte.
using Bytes = Quantity<struct BytesTag, std::int64_t>;
/// An estimate.
using Seconds = Quantity<struct SecondsTag, double>;
/// Work: floating-point operations, a multiply-add counts 2.
using Flops = Quantity<struct FlopsTag, double>;
/// Rate of work.
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
/// 1 GB/s = 1e9 B/s.
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return Seconds(static_cast<double>(b.value()) / r.value());
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return Seconds(f.value() / r.value()); }
constexpr FlopsPerSecond operator/(Flops f, Seconds s) {
  return FlopsPerSecond(f.value() / s.value());
}
constexpr BytesPerSecond operator/(Bytes b, Seconds s) {
  return BytesPerSecond(static_cast<double>(b.value()) / s.value());
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) * 1'000'000'000);
}
constexpr BytesPerSecond operator""_GBps(unsigned long long n) {
  return BytesPerSecond(static_cast<double>(n) * 1e9);
}
constexpr Seconds operator""_us(unsigned long long n) {
  return Seconds(static_cast<double>(n) * 1e-6);
}
constexpr Seconds operator""_ms(unsigned long long n) {
  return Seconds(static_cast<double>(n) * 1e-3);
}
}  // namespace literals

inline constexpr double kBytesPerGiB = 1024.0 * 1024.0 * 1024.0;

/// Quotient rounded up. \pre a >= 0, b > 0
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// Smallest multiple of `step` that is not below `a`. \pre a >= 0, step > 0
constexpr std::int64_t round_up(std::int64_t a, std::int64_t step) {
  return ceil_div(a, step) * step;
}

static_assert(900_GB / 900_GBps == Seconds(1.0));

}  // namespace shardwise
