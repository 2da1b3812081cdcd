#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "tests/executor/device/hand_made.h"
#include "tests/support/host_cuda/fake_cuda.h"

namespace shardwise::exec::test {

/// How often a test runs a program of counters.
inline constexpr int kProgramRuns = 6;

/// Operations that hold what they need: each has a number in the memory of a device, looks whether
/// all before it have the number of this run, and takes it then. The first writes the run's.
class Counters {
 public:
  Counters(CudaDevice& device, const StageProgram& program)
      : program_(program),
        memory_(device.allocate(bytes(program.operations.size() + 1), MemorySpace::device)),
        wrong_(program.operations.size()) {
    for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
      kernels_.emplace_back([this, op](DeviceStream& stream) {
        const auto status =
            fake_cuda::enqueue(cuda_stream(stream).handle(), "count", [this, op] { count(op); });
        if (status != cudaSuccess) throw std::runtime_error("count is refused");
      });
    }
  }

  /// Sets the run's number: as the host's writes before a step.
  void set(CudaDevice& device, DeviceStream& stream, std::int32_t run) const {
    device.upload(memory_.at(), std::as_bytes(std::span(&run, 1)), stream);
    device.synchronize(stream);
  }
  const OpKernels& kernels() const { return kernels_; }
  OpKernels& kernels() { return kernels_; }
  std::int64_t wrong() const { return std::accumulate(wrong_.begin(), wrong_.end(), 0); }
  /// Whether all operations took the run's number.
  bool all_at(CudaDevice& device, DeviceStream& stream, std::int32_t run) const {
    std::vector<std::int32_t> values(program_.operations.size() + 1);
    device.download(std::as_writable_bytes(std::span(values)), memory_.at(), stream);
    return std::ranges::count(values, run) == std::ssize(values);
  }

 private:
  static std::int64_t bytes(std::size_t count) { return 4 * static_cast<std::int64_t>(count); }
  void count(std::uint32_t op) {
    auto* const values = reinterpret_cast<std::int32_t*>(memory_.at());
    for (const std::uint32_t b : before(program_, op)) wrong_[op] += values[1 + b] != values[0];
    values[1 + op] = values[0];
  }

  const StageProgram& program_;
  DeviceMemory memory_;
  std::vector<int> wrong_;
  OpKernels kernels_;
};

}  // namespace shardwise::exec::test
