#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/device/cuda/cuda_stream.h"
#include "executor/kernels/cuda/kernel_tuning.h"

namespace shardwise::exec {

/// Medians, by events, of what is issued to one stream of a GPU that nothing else uses. What is
/// repeated reads what the run before left in the GPU's cache, as far as that goes.
class EventClock final : public KernelClock {
 public:
  /// \param device  a CudaDevice  \param seconds_each  that a call is repeated for: five times at
  /// least, ten thousand at most
  EventClock(Device& device, double seconds_each);

  cudaStream_t stream() const override { return cuda_stream(*stream_).handle(); }
  DeviceStream& device_stream() { return *stream_; }
  void set_seconds_each(double seconds) { seconds_each_ = seconds; }
  /// Calls that the last median is of.
  std::int64_t repeats() const { return repeats_; }

  /// Fills memory with one random block over and over: a sign, four exponents and a mantissa.
  void fill(std::span<std::byte> memory, DType dtype) override;
  double seconds(const std::function<void()>& issue) override;

 private:
  double time_of(const std::function<void()>& issue, int times);

  Device& device_;
  std::unique_ptr<DeviceStream> stream_;
  CudaCalls calls_;
  CudaEvent begin_;
  CudaEvent end_;
  double seconds_each_;
  std::vector<std::uint32_t> random_;
  std::int64_t repeats_ = 0;
};

}  // namespace shardwise::exec
