#pragma once

#include <gtest/gtest.h>
#include <host_cuda.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "executor/kernels/element.h"
#include "tests/executor/support/numbers.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec {

/// Whether the kernels run on a GPU (tests/support/on_gpu): memory that they touch is allocated
/// while the test runs, never on the stack.
#if defined(SHARDWISE_ON_GPU)
inline constexpr bool kOnGpu = true;
#else
inline constexpr bool kOnGpu = false;
#endif

/// `values` in E, as large as they are: the address sanitizer sees what goes beyond.
template <class E>
std::vector<E> as(const Floats& values) {
  std::vector<E> made;
  made.reserve(values.size());
  for (const float each : values) made.push_back(from_float<E>(each));
  return made;
}
template <class E>
Floats wide(const std::vector<E>& values) {
  Floats made;
  for (const E each : values) made.push_back(to_float(each));
  return made;
}

/// Orders and inputs that a test draws.
inline constexpr unsigned kSeeds = shardwise::test::kSanitized ? 1 : 3;

/// NaN everywhere: what a kernel does not write is seen.
template <class E>
std::vector<E> unwritten(std::int64_t count) {
  return std::vector<E>(static_cast<std::size_t>(count),
                        from_float<E>(std::numeric_limits<float>::quiet_NaN()));
}

/// Loss by one rounding to E and some of fp32, of numbers of the size of the largest.
template <class E>
double tolerance() {
  return sizeof(E) == 2 ? 5e-3 : kFp32Tolerance;
}

/// Each equal to the CPU kernel's number, but for a last place of E where sums of other orders lie
/// on two sides of its rounding.
template <class E>
void expect_near_cpu(const std::vector<E>& actual, const std::vector<E>& cpu, const char* what) {
  ASSERT_EQ(actual.size(), cpu.size()) << what;
  double largest = 1e-30;
  for (const E each : cpu)
    largest = std::max(largest, std::abs(static_cast<double>(to_float(each))));
  const double place = sizeof(E) == 2 ? 1.0 / 128 : kFp32Tolerance;
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    const auto expected = static_cast<double>(to_float(cpu[i]));
    ASSERT_NEAR(static_cast<double>(to_float(actual[i])), expected,
                place * std::abs(expected) + kFp32Tolerance * largest)
        << what << " at " << i;
  }
}

/// Leaves out each barrier that the threads of `run` come to, one after the other: the thread
/// sanitizer must report each. Without it there is nothing to see.
inline void expect_every_barrier_is_needed(const std::function<void()>& run) {
  if (!host_cuda::races_are_watched()) return;
  host_cuda::barriers_met();
  run();
  const int barriers = host_cuda::barriers_met();
  for (int left_out = 0; left_out < barriers; ++left_out) {
    EXPECT_EXIT(
        {
          host_cuda::exit_at_race();
          host_cuda::leave_out_barrier(left_out);
          run();
        },
        testing::ExitedWithCode(host_cuda::kRaceStatus), "data race")
        << "barrier " << left_out << " of " << barriers;
  }
}

}  // namespace shardwise::exec
