#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/cuda/gemm_plans.h"

namespace shardwise::exec {

/// Medians, by events, of what is issued to one stream of a GPU that nothing else uses.
class EventClock final : public GemmClock {
 public:
  /// \param seconds_each  that a call is repeated for
  EventClock(CudaDevice& device, double seconds_each);

  cudaStream_t stream() const { return stream_.handle(); }
  void set_seconds_each(double seconds) { seconds_each_ = seconds; }
  /// Calls that the last median is of.
  std::int64_t repeats() const { return repeats_; }

  /// The same random block over and over: a sign, four exponents and a mantissa, in either type.
  void fill(std::span<std::byte> memory, DType dtype) override;
  double seconds(const std::function<void()>& issue) override;

 private:
  double time_of(const std::function<void()>& issue, int times);

  CudaDevice& device_;
  CudaStream stream_;
  CudaEvent begin_;
  CudaEvent end_;
  double seconds_each_;
  std::vector<std::uint32_t> random_;
  std::int64_t repeats_ = 0;
};

}  // namespace shardwise::exec
