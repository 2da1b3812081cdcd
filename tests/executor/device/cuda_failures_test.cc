#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>

#include "executor/device/cuda/cuda_device.h"
#include "tests/executor/device/counters.h"
#include "tests/executor/device/hand_made.h"
#include "tests/support/host_cuda/fake_cuda.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// A device, a program and a runner, used in every way once.
void use_everything() {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  AbortSignal abort;
  try {
    CudaDevice device(0, 7);
    static_cast<void>(device.facts());
    const auto stream = device.stream(StreamPriority::high);
    const DeviceMemory pinned = device.allocate(64, MemorySpace::pinned);
    Counters counters(device, program);
    const auto runner = device.runner({&program}, 7, abort);
    for (std::int32_t run = 1; run <= kProgramRuns; ++run) {
      counters.set(device, *stream, run);
      runner->run(0, counters.kernels(), run == 1 ? Spans::recorded : Spans::none);
      static_cast<void>(counters.all_at(device, *stream, run));
    }
  } catch (const Aborted&) {
    throw std::runtime_error(abort.message());
  }
}

TEST(CudaDevice, SaysWhichCallFailedAndLeavesNothingBehind) {
  fake_cuda::reset(8);
  use_everything();
  EXPECT_THAT(fake_cuda::complaints(), IsEmpty());
  EXPECT_EQ(fake_cuda::left_over(), "");
  const std::map<std::string, int> calls = fake_cuda::calls();
  EXPECT_GT(calls.size(), 20U);
  for (const auto& [call, count] : calls) {
    if (call == "count") continue;  // the test's own
    for (int nth = 0; nth < count; ++nth) {
      fake_cuda::reset(8);
      fake_cuda::fail(call, nth, static_cast<cudaError_t>(700 + nth));
      const bool gives_back =
          call.find("Destroy") != std::string::npos || call == "cudaFree" || call == "cudaFreeHost";
      std::string said;
      try {
        use_everything();
      } catch (const std::exception& broken) {
        said = broken.what();
      }
      const std::string where = call + ", call " + std::to_string(nth);
      if (!gives_back && !(call == "cudaStreamSynchronize" && said.empty())) {
        EXPECT_THAT(said, AllOf(testing::ContainsRegex("^rank 7(, [a-z0-9. ]+)?: " + call + ": "),
                                HasSubstr(", " + std::to_string(700 + nth) + ")"),
                                testing::Not(HasSubstr("\n"))))
            << where;
      }
      EXPECT_THAT(fake_cuda::complaints(), IsEmpty()) << where;
      EXPECT_EQ(fake_cuda::left_over(), "") << where;
    }
  }
}

}  // namespace
}  // namespace shardwise::exec::test
