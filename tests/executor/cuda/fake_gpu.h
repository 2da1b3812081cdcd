#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/cuda/gpu_compute.h"
#include "tests/executor/support/tiny_model.h"
#include "tests/support/host_cuda/fake_cublaslt.h"
#include "tests/support/host_cuda/fake_cuda.h"

namespace shardwise::exec::test {

using Products = GpuComputeOptions::Products;

/// A GPU of fakes: the real device, compute and kernels on a fake of CUDA's runtime and, if asked,
/// of cuBLASLt.
class FakeGpu {
 public:
  static constexpr int kCapability = 90;

  /// \param workspace_bytes  of kernels \throws CublasLtError where the real library is not there
  FakeGpu(std::uint64_t seed, Products products, std::int64_t workspace_bytes)
      : FakeGpu(seed, {.products = products, .attention = GpuComputeOptions::Attention::own},
                workspace_bytes) {}
  /// \param cudnn  a fake of it; null for none
  FakeGpu(std::uint64_t seed, const GpuComputeOptions& options, std::int64_t workspace_bytes,
          std::shared_ptr<const CudnnLibrary> cudnn = nullptr) {
    fake_cuda::reset(seed);
    device_ = std::make_unique<CudaDevice>(0, 0);
    workspace_ = device_->allocate(workspace_bytes, MemorySpace::device);
    libraries_.cudnn = std::move(cudnn);
    if (options.products == Products::cublaslt) {
      libraries_.cublaslt = std::make_shared<CublasLtLibrary>(fake_cublaslt::reset());
      fake_cublaslt::set_enqueue(
          [](cudaStream_t stream, const char* name, std::function<void()> run) {
            fake_cuda::enqueue(stream, name, std::move(run));
          });
    }
    compute_ = make_gpu_compute(device_->facts(), 0, libraries_, options);
    compute_->set_workspace(workspace());
  }

  std::span<std::byte> workspace() {
    return {workspace_.at(), static_cast<std::size_t>(workspace_.bytes())};
  }
  Platform platform() { return {*device_, *compute_}; }
  CudaDevice& device() { return *device_; }
  Compute& compute() { return *compute_; }

  /// Calls that CUDA or cuBLASLt forbid.
  static std::vector<std::string> complaints() {
    std::vector<std::string> all = fake_cuda::complaints();
    for (const std::string& each : fake_cublaslt::complaints()) all.push_back(each);
    return all;
  }

 private:
  std::unique_ptr<CudaDevice> device_;
  DeviceMemory workspace_;
  GpuLibraries libraries_;
  std::unique_ptr<Compute> compute_;
};

}  // namespace shardwise::exec::test
