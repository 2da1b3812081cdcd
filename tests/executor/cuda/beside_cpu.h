#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <vector>

#include "executor/device/cpu/cpu_device.h"
#include "executor/kernels/compute/cpu_compute.h"
#include "tests/executor/cuda/fake_gpu.h"
#include "tests/executor/support/numbers.h"

namespace shardwise::exec::test {

/// The tensors of one operation on one device, in the order in which they are made.
class Tensors {
 public:
  explicit Tensors(Device& device) : device_(device) {}

  DeviceStream& stream() { return *stream_; }
  /// Drawn numbers of -1 to 1, the same on each device.
  TensorView drawn(DType dtype, std::int64_t count) {
    const Floats values = random_floats(count, static_cast<unsigned>(tensors_.size()));
    std::byte* const at =
        dtype == DType::fp32 ? given(values, dtype) : given(rounded(values), dtype);
    return {at, values.size(), dtype};
  }
  std::byte* at(DType dtype, std::int64_t count) { return drawn(dtype, count).data; }
  float* floats(std::int64_t count) { return reinterpret_cast<float*>(at(DType::fp32, count)); }
  /// Compared by their bytes.
  template <class T>
  T* of(const std::vector<T>& values) {
    return reinterpret_cast<T*>(given(values, std::nullopt));
  }
  /// Compared with nothing: a workspace, say.
  template <class T>
  T* beside(const std::vector<T>& values) {
    T* const made = of(values);
    tensors_.back().compared = false;
    return made;
  }
  std::byte* workspace(std::int64_t bytes) {
    return beside(std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xff}));
  }
  template <class T>
  T taken(const T* from) {
    T value;
    device_.download(std::as_writable_bytes(std::span(&value, 1)),
                     reinterpret_cast<const std::byte*>(from), *stream_);
    return value;
  }
  /// All of them, as the device left them.
  std::vector<Floats> left() {
    std::vector<Floats> all;
    for (const Tensor& each : tensors_) {
      if (!each.compared) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(each.memory.bytes()));
      device_.download(bytes, each.memory.at(), *stream_);
      Floats& values = all.emplace_back();
      if (!each.dtype) {
        for (const std::byte byte : bytes) values.push_back(static_cast<float>(byte));
        continue;
      }
      values.resize(bytes.size() / static_cast<std::size_t>(bytes_of(*each.dtype)));
      cast(TensorView(values), ConstTensorView(bytes.data(), values.size(), *each.dtype));
    }
    return all;
  }

 private:
  struct Tensor {
    DeviceMemory memory;
    std::optional<DType> dtype;
    bool compared = true;
  };
  template <class T>
  std::byte* given(const std::vector<T>& values, std::optional<DType> dtype) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors_.push_back({device_.allocate(std::ssize(bytes), MemorySpace::device), dtype});
    std::byte* const place = tensors_.back().memory.at();
    device_.upload(place, bytes, *stream_);
    return place;
  }

  Device& device_;
  std::unique_ptr<DeviceStream> stream_ = device_.stream(StreamPriority::normal);
  std::vector<Tensor> tensors_;
};

using Operation = std::function<void(Compute&, Tensors&)>;

inline std::vector<Floats> left_by(const Operation& operation, Device& device, Compute& compute) {
  Tensors tensors(device);
  operation(compute, tensors);
  return tensors.left();
}

inline std::vector<Floats> left_by_cpu(const Operation& operation) {
  Workers workers(1);
  CpuDevice device;
  CpuCompute compute(workers);
  return left_by(operation, device, compute);
}

inline std::vector<Floats> left_by_gpu(const Operation& operation) {
  std::vector<Floats> left;
  {
    FakeGpu gpu(3, Products::own, std::int64_t{1} << 20);
    left = left_by(operation, gpu.device(), gpu.compute());
    EXPECT_THAT(fake_cuda::complaints(), testing::IsEmpty());
  }
  EXPECT_EQ(fake_cuda::left_over(), "");
  return left;
}

inline void expect_bits_of_cpu(const Operation& operation) {
  EXPECT_EQ(left_by_gpu(operation), left_by_cpu(operation));
}

/// Within two roundings of the type, of numbers of the size of a tensor's largest.
inline void expect_as_cpu(const Operation& operation, DType dtype) {
  const std::vector<Floats> gpu = left_by_gpu(operation);
  const std::vector<Floats> cpu = left_by_cpu(operation);
  ASSERT_EQ(gpu.size(), cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(gpu[i], doubles(cpu[i]), dtype == DType::fp32 ? kFp32Tolerance : 1.0 / 128,
                 "tensor");
  }
}

struct Types {
  DType dtype;
  DType gradient;
};
/// An operation in types of tensors and of weight gradients.
class CudaComputeIn : public testing::TestWithParam<Types> {
 protected:
  static DType dtype() { return GetParam().dtype; }
  static DType gradient() { return GetParam().gradient; }
};

/// All that there are kernels for.
inline const auto kAllTypes =
    testing::Values(Types{DType::fp32, DType::fp32}, Types{DType::bf16, DType::fp32},
                    Types{DType::bf16, DType::bf16});
inline std::string name_of_types(const testing::TestParamInfo<Types>& info) {
  if (info.param.dtype == DType::fp32) return "fp32";
  return info.param.gradient == DType::fp32 ? "bf16" : "bf16_gradients";
}

}  // namespace shardwise::exec::test
