#include "tests/support/on_gpu/skip_without_gpu.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

namespace on_gpu {
namespace {

class Listener final : public testing::EmptyTestEventListener {
 public:
  void OnTestProgramStart(const testing::UnitTest& /*all*/) override {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) {
      why_not_ = std::string("no GPU: ") + cudaGetErrorString(error);
    } else if (devices == 0) {
      why_not_ = "no GPU";
    }
  }
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    if (!why_not_.empty()) GTEST_SKIP() << why_not_;
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    if (!why_not_.empty()) return;
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) ADD_FAILURE() << "the GPU failed: " << cudaGetErrorString(error);
  }

 private:
  std::string why_not_;
};

}  // namespace

void skip_without_gpu() { testing::UnitTest::GetInstance()->listeners().Append(new Listener); }

}  // namespace on_gpu
