#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/device/device.h"
#include "executor/kernels/compute/gradient_check.h"
#include "executor/kernels/products/cross_entropy.h"
#include "executor/optimizer/adamw.h"
#include "planner/cost/memory/step_block.h"

namespace shardwise::exec {

/// The host's image of the block through which it hands the operations of a step what changes from
/// step to step, and reads what they found: StepBlock says where each lies. Nothing else of the
/// host is read or written by operations.
class StepScalars {
 public:
  explicit StepScalars(const StepBlockShape& shape);

  // Written before a step.
  std::span<std::int64_t> inputs(std::size_t microbatch) {
    return numbers<std::int64_t>(part(block_.inputs, microbatch));
  }
  std::span<std::int64_t> targets(std::size_t microbatch) {
    return numbers<std::int64_t>(part(block_.targets, microbatch));
  }
  float& loss_scale(std::size_t microbatch) {
    return numbers<float>(part(block_.loss_scales, microbatch)).front();
  }
  std::int64_t& own_tokens() { return numbers<std::int64_t>(block_.own_tokens).front(); }
  AdamStep& adam_step() { return numbers<AdamStep>(block_.adam_step).front(); }

  // Read after it. Losses are cleared before; checks go on with what earlier steps found.
  std::span<LossSum> losses() { return numbers<LossSum>(block_.losses); }
  double gradient_norm() { return numbers<double>(block_.gradient_norm).front(); }
  GradientCheckState& gradient_check() {
    return numbers<GradientCheckState>(block_.gradient_check).front();
  }

  /// Writes the host's scalars to the block in the device's memory.
  void upload(Device& device, std::byte* block, DeviceStream& stream) const;
  /// Reads what operations found. Waits for what was issued to the stream.
  void download(Device& device, const std::byte* block, DeviceStream& stream);

 private:
  StepRange part(const StepRange& all, std::size_t microbatch) const {
    return all.part(static_cast<std::int64_t>(microbatch), shape_.microbatches);
  }
  template <class T>
  std::span<T> numbers(const StepRange& range) {
    return {reinterpret_cast<T*>(image_.data() + range.begin),
            static_cast<std::size_t>(range.bytes) / sizeof(T)};
  }

  StepBlockShape shape_;
  StepBlock block_;
  std::vector<std::byte> image_;
};

}  // namespace shardwise::exec
