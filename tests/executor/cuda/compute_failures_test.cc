// What Compute on a GPU says when CUDA refuses, and how it asks cuBLASLt.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "executor/kernels/products/cross_entropy.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/units.h"
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
      EXPECT_STREQ(error.what(), "CUDA does not start the kernel clear: error 9 of the fake");
    }
  }
  EXPECT_EQ(fake_cuda::left_over(), "");
}

/// Of the products of a head, whose memory has `chunk` rows of logits.
std::vector<fake_cublaslt::Ran> products_of_head(std::int64_t rows, std::int64_t vocabulary,
                                                 std::int64_t chunk) {
  constexpr std::int64_t kHidden = 16;
  const CrossEntropyShape shape = {rows, kHidden, vocabulary, chunk};
  FakeGpu gpu(5, Products::cublaslt, std::int64_t{64} << 20);
  const auto stream = gpu.device().stream(StreamPriority::normal);
  const DeviceMemory memory = gpu.device().allocate(1 << 20, MemorySpace::device);
  std::byte* at = memory.at();
  const auto place = [&](std::int64_t bytes) {
    std::byte* const made = at;
    std::fill_n(made, bytes, std::byte{0});
    at += ceil_div(bytes, std::int64_t{256}) * 256;
    return made;
  };
  gpu.compute().head({.shape = shape,
                      .dtype = DType::bf16,
                      .gradient = DType::fp32,
                      .x = place(rows * kHidden * 2),
                      .weight = place(vocabulary * kHidden * 2),
                      .targets = reinterpret_cast<std::int64_t*>(place(rows * 8)),
                      .scale = reinterpret_cast<float*>(place(4)),
                      .d_weight = place(vocabulary * kHidden * 4),
                      .loss = reinterpret_cast<LossSum*>(place(sizeof(LossSum))),
                      .workspace = place(cross_entropy_bytes(shape, DType::bf16))},
                     *stream);
  gpu.device().synchronize(*stream);
  EXPECT_EQ(FakeGpu::complaints(), std::vector<std::string>());
  return fake_cublaslt::ran();
}

// A leading dimension that 8 elements do not divide takes cuBLASLt's fast kernels away.
TEST(CudaCompute, HasRowsOfLogitsOfWhole64ElementsInTheMemoryOfDenseOnes) {
  try {
    const auto padded = products_of_head(160, 507, 160);
    // Of 512 elements the memory has 158 rows: two chunks of 80, three products each, of which the
    // two with the vocabulary outside are in two parts, 504 and 3.
    ASSERT_EQ(padded.size(), 10U);
    EXPECT_EQ(padded.front().d_stride, 512);
    const auto whole = products_of_head(160, 512, 160);
    ASSERT_EQ(whole.size(), 3U);
    EXPECT_EQ(whole.front().d_stride, 512);
    const auto dense = products_of_head(160, 33, 160);  // 64 would be twice the memory
    ASSERT_EQ(dense.size(), 3U);
    EXPECT_EQ(dense.front().d_stride, 33);
  } catch (const CublasLtError& missing) {
    GTEST_SKIP() << missing.what();
  }
}

}  // namespace
}  // namespace shardwise::exec::test
