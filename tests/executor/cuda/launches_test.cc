// Kernels whose work would leave most of a GPU idle, or one of its blocks alone, by how they are
// launched.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/kernels/cuda/norm.h"
#include "executor/kernels/cuda/operations.h"
#include "executor/kernels/cuda/products.h"
#include "planner/cost/kernels/gpu_workspace.h"
#include "tests/executor/cuda/on_host.h"

namespace shardwise::exec {
namespace {

constexpr unsigned kMultiprocessors = 132;  // of an H100

/// Blocks of each kernel that is launched while it lives. None runs.
class Launches {
 public:
  Launches() {
    host_cuda::set_enqueue([this](cudaStream_t, const char* name, dim3 grid, dim3, std::size_t,
                                  const std::function<void()>&) {
      blocks[name] = grid.x * grid.y;
      return static_cast<const char*>(nullptr);
    });
  }
  ~Launches() { host_cuda::set_enqueue({}); }
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;
  std::map<std::string, unsigned> blocks;
};

alignas(16) std::byte unread_place[16];  // nobody reads it

template <class T>
T* somewhere() {
  return reinterpret_cast<T*>(unread_place);
}

unsigned blocks_of_norm_backward(std::int64_t rows, std::int64_t heads, std::int64_t width) {
  const Launches launches;
  const NormShape shape = {rows, heads, width, heads * width, heads * width, 1e-5F};
  cuda::rms_norm_backward(shape, somewhere<Bf16>(), somewhere<Bf16>(), somewhere<float>(),
                          somewhere<Bf16>(), somewhere<Bf16>(), false, somewhere<float>(),
                          unread_place, nullptr);
  return launches.blocks.at("norm backward");
}

// Two blocks have room in a multiprocessor.
TEST(CudaLaunches, GiveEachMultiprocessorBlocksOfANormsBackwardHoweverNarrowItsRowsAre) {
  EXPECT_GE(blocks_of_norm_backward(8192, 1, 768), 2 * kMultiprocessors);
  EXPECT_GE(blocks_of_norm_backward(8192, 16, 128), 2 * kMultiprocessors);
  EXPECT_GE(blocks_of_norm_backward(8192, 1, 4096), 2 * kMultiprocessors);
}

TEST(CudaLaunches, GiveEachMultiprocessorBlocksOfABiasGradient) {
  const Launches launches;
  cuda::bias_gradient(8192, 768, 768, somewhere<Bf16>(), somewhere<Bf16>(), unread_place, nullptr);
  EXPECT_GE(launches.blocks.at("bias gradient parts"), 2 * kMultiprocessors);
}

TEST(CudaLaunches, AddTheLossesOfManyRowsInMoreThanOneBlock) {
  const Launches launches;
  cuda::sum_losses(32768, somewhere<std::int64_t>(), somewhere<float>(), somewhere<LossSum>(),
                   unread_place, nullptr);
  EXPECT_EQ(launches.blocks.at("sum losses"), 128U);
}

}  // namespace
}  // namespace shardwise::exec
