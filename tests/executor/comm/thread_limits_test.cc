// Threads that the system does not start, for lack of memory or because of a limit (D15).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/kernels/products/gemm.h"
#include "executor/kernels/products/gemm_library.h"
#include "executor/kernels/workers.h"
#include "tests/executor/support/limited.h"

namespace shardwise::exec::test {
namespace {

using testing::AnyOf;
using testing::MatchesRegex;

constexpr std::int64_t kSomeThreads = std::int64_t{200} << 20;  // their stacks have 8 MiB each

// Those that had been started were once destroyed while they ran, which aborts.
TEST(Workers, SayWhichOfTheirThreadsCannotBeStarted) {
  EXPECT_THAT(error_within(kSomeThreads, [] { const Workers workers(4000); }),
              AnyOf("sanitized", MatchesRegex("thread [0-9]+ of 4000 that compute cannot be "
                                              "started: Resource temporarily unavailable .see "
                                              "ulimit -v and ulimit -u.")));
}

// Those that had been started once waited for it until the timeout, and were said to hang.
TEST(RunRanks, NamesTheRankWhoseThreadCannotBeStarted) {
  const auto all_meet = [](World& world) {
    std::vector<std::byte> all(static_cast<std::size_t>(world.size()));
    world.control_group(all_ranks(world), Control::results)
        ->all_gather_bytes(std::vector<std::byte>(1), all);
  };
  EXPECT_THAT(error_within(kSomeThreads,
                           [&] {
                             AbortSignal abort;
                             run_ranks(1000, abort, all_meet, std::chrono::hours(1));
                           }),
              AnyOf("sanitized", MatchesRegex("rank [0-9]+: its thread cannot be started: Resource "
                                              "temporarily unavailable .see ulimit -v and ulimit "
                                              "-u.")));
}

// OpenBLAS tries without end to get the buffer of a thread: that was a rank that hangs.
TEST(GemmBuffers, AreFoundMissingBeforeAThreadNeedsOne) {
  if (gemm_library().name != "OpenBLAS") GTEST_SKIP() << "Eigen needs none";
  EXPECT_THAT(error_within(std::int64_t{1} << 30, [] { reserve_gemm_buffers(1000); }),
              AnyOf("sanitized", MatchesRegex("no room for the buffers of 1000 computing threads: "
                                              "they take 195 GiB of address space, which ulimit -v "
                                              "limits to .* GiB")));
  EXPECT_THAT(error_within(std::int64_t{1} << 30, [] { reserve_gemm_buffers(2); }),
              AnyOf("sanitized", "nothing"));
  reserve_gemm_buffers(1'000'000);  // without a limit
}

}  // namespace
}  // namespace shardwise::exec::test
