// What Compute on a GPU says when CUDA refuses.
#include <gtest/gtest.h>

#include "planner/spec/error.h"
#include "tests/executor/cuda/fake_gpu.h"

namespace shardwise::exec::test {
namespace {

TEST(CudaCompute, NamesTheKernelThatCudaDoesNotStart) {
  {
    FakeGpu gpu(5, Products::own, 0);
    const auto stream = gpu.device().stream(StreamPriority::normal);
    const DeviceMemory memory = gpu.device().allocate(64, MemorySpace::device);
    fake_cuda::fail("launch", 0, cudaErrorInvalidConfiguration);
    try {
      gpu.compute().clear({memory.at(), 16, DType::fp32}, *stream);
      ADD_FAILURE() << "a launch failed and nobody said so";
    } catch (const IoError& error) {
      EXPECT_STREQ(error.what(), "CUDA does not start the kernel clear: of the fake");
    }
  }
  EXPECT_EQ(fake_cuda::left_over(), "");
}

}  // namespace
}  // namespace shardwise::exec::test
