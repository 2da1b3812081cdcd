#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

/// Times what is issued to its stream, of a device that nothing else uses meanwhile.
class KernelClock {
 public:
  virtual ~KernelClock() = default;
  KernelClock() = default;
  KernelClock(const KernelClock&) = delete;
  KernelClock& operator=(const KernelClock&) = delete;

  virtual cudaStream_t stream() const = 0;
  /// Random numbers, of a few binary orders of magnitude: products of zeros draw less power, and so
  /// run faster.
  virtual void fill(std::span<std::byte> memory, DType dtype) = 0;
  /// Seconds that one `issue` takes on the device, warm: what is typical of several.
  virtual double seconds(const std::function<void()>& issue) = 0;
};

/// Means by which kernels are chosen before a run's first step, and the choices.
struct KernelTuning {
  KernelClock& clock;
  std::span<std::byte> workspace;  // that products and attention will have
  // NOLINTBEGIN(*-redundant-member-init): GCC asks for it
  std::set<std::string> timed = {};
  std::set<std::string> kept = {};  // of an earlier run
  /// Algorithms in cuBLASLt's lists that it cannot do, a line each: "bf16 tn 16x5x24 …: why".
  std::set<std::string> dropped = {};
  // NOLINTEND(*-redundant-member-init)
  /// Called when one was timed.
  std::function<void()> progress = [] {};
};

}  // namespace shardwise::exec
