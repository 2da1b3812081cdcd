#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "executor/kernels/compute/cpu_compute.h"
#include "executor/kernels/cuda/cuda_linear.h"
#include "planner/cost/kernels/gemm_workspace.h"
#include "tests/executor/support/numbers.h"
#include "tests/support/host_cuda/fake_cublaslt.h"

namespace shardwise::exec::test {

/// A tensor at an address that 256 divides, `offset` elements later.
class Tensor {
 public:
  Tensor(DType dtype, const Floats& values, std::int64_t offset = 0)
      : dtype_(dtype), count_(std::ssize(values)) {
    const auto size = static_cast<std::size_t>(bits_of(dtype) / 8);
    memory_.resize(values.size() * size + 512 + static_cast<std::size_t>(offset) * size);
    void* at = memory_.data();
    std::size_t space = memory_.size();
    std::align(256, 1, at, space);
    at_ = static_cast<std::byte*>(at) + static_cast<std::size_t>(offset) * size;
    for (std::int64_t i = 0; i < count_; ++i) {
      const float value = values[static_cast<std::size_t>(i)];
      if (dtype == DType::fp32) {
        reinterpret_cast<float*>(at_)[i] = value;
      } else {
        reinterpret_cast<Bf16*>(at_)[i] = from_float<Bf16>(value);
      }
    }
  }
  std::byte* at() const { return at_; }
  Floats values() const {
    Floats result;
    for (std::int64_t i = 0; i < count_; ++i) {
      result.push_back(dtype_ == DType::fp32 ? reinterpret_cast<const float*>(at_)[i]
                                             : to_float(reinterpret_cast<const Bf16*>(at_)[i]));
    }
    return result;
  }

 private:
  DType dtype_;
  std::int64_t count_;
  std::vector<std::byte> memory_;
  std::byte* at_ = nullptr;
};

/// The passes by the CPU's kernels.
class CpuPasses final : public LinearPasses {
 public:
  void gelu(const GeluWork& work, cudaStream_t /*stream*/) override {
    ++issued;
    cpu_.gelu(work, stream_);
  }
  void gelu_backward(const GeluBackwardPass& p, cudaStream_t /*stream*/) override {
    ++issued;
    if (p.dtype == DType::fp32) {
      auto* const d_x = reinterpret_cast<float*>(p.d_x);
      return exec::gelu_backward(p.kind, p.count, reinterpret_cast<const float*>(p.before), d_x,
                                 d_x, workers_);
    }
    auto* const d_x = reinterpret_cast<Bf16*>(p.d_x);
    exec::gelu_backward(p.kind, p.count, reinterpret_cast<const Bf16*>(p.before), d_x, d_x,
                        workers_);
  }
  void bias_gradient(const BiasGradientPass& p, cudaStream_t /*stream*/) override {
    ++issued;
    const LinearShape shape = {p.rows, 0, p.width, 0, p.stride, false};
    cpu_.linear_backward_weight({.shape = shape,
                                 .dtype = p.dtype,
                                 .gradient = p.gradient,
                                 .d_y = p.d_y,
                                 .d_bias = p.d_bias},
                                stream_);
  }
  int issued = 0;

 private:
  Workers workers_{1};
  CpuCompute cpu_{workers_};
  DeviceStream stream_;
};

/// Products on the fake.
class LinearOnFake : public testing::Test {
 protected:
  void SetUp() override {
    try {
      library_ = std::make_unique<CublasLtLibrary>(fake_cublaslt::reset());
    } catch (const CublasLtError& missing) {
      GTEST_SKIP() << missing.what();
    }
    constexpr int kHopper = 90;
    const std::int64_t bytes = gemm_workspace_bytes(kHopper);
    workspace_memory_.resize(static_cast<std::size_t>(bytes) + 256);
    void* at = workspace_memory_.data();
    std::size_t space = workspace_memory_.size();
    workspace_ = static_cast<std::byte*>(std::align(256, 1, at, space));
    options_ = {3, CudaLinear::product_bytes(bytes)};
  }
  void TearDown() override {
    if (!library_) return;
    EXPECT_EQ(fake_cublaslt::complaints(), std::vector<std::string>());
    EXPECT_EQ(fake_cublaslt::left_over(), "");
  }

  std::unique_ptr<CublasLtLibrary> library_;
  GemmPlans::Options options_;
  std::vector<std::byte> workspace_memory_;
  std::byte* workspace_ = nullptr;
};

}  // namespace shardwise::exec::test
