#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "executor/kernels/compute/cpu_compute.h"
#include "tests/executor/support/numbers.h"

namespace shardwise::exec::test {

template <class E, class G>
struct Types {
  using Element = E;
  using Gradient = G;
};

/// Numbers of type E, drawn; and as the bytes that operations take.
template <class E>
std::vector<E> drawn(std::int64_t count, unsigned seed) {
  if constexpr (std::is_same_v<E, float>) {
    return random_floats(count, seed);
  } else {
    return rounded(random_floats(count, seed));
  }
}
template <class E>
std::byte* bytes(std::vector<E>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}
template <class E>
void expect_bits(const std::vector<E>& actual, const std::vector<E>& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(E)), 0) << what;
}

/// The operations of the CPU on tensors of a pair of types.
template <class T>
class CpuComputeOf : public testing::Test {
 protected:
  using Element = typename T::Element;
  using Gradient = typename T::Gradient;
  static constexpr DType kDType = std::is_same_v<Element, float> ? DType::fp32 : DType::bf16;
  static constexpr DType kGradient = std::is_same_v<Gradient, float> ? DType::fp32 : DType::bf16;
  static std::vector<Element> elements(std::int64_t count, unsigned seed) {
    return drawn<Element>(count, seed);
  }
  static std::vector<Gradient> gradients(std::int64_t count, unsigned seed) {
    return drawn<Gradient>(count, seed);
  }

  Workers workers_{2};
  CpuCompute compute_{workers_};
  DeviceStream stream_;
};
using AllTypes = testing::Types<Types<float, float>, Types<Bf16, float>, Types<Bf16, Bf16>>;
class TypeNames {
 public:
  template <class T>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's
    const bool wide = std::is_same_v<typename T::Gradient, float>;
    return std::is_same_v<typename T::Element, float> ? "fp32" : wide ? "bf16" : "bf16_gradients";
  }
};

inline constexpr std::int64_t kRows = 37;  // no multiple of a task's
inline constexpr std::int64_t kIn = 19;
inline constexpr std::int64_t kOut = 23;
inline constexpr std::int64_t kWide = kOut + 5;

}  // namespace shardwise::exec::test
