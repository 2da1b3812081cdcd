#include "executor/engine/step_scalars.h"

namespace shardwise::exec {

static_assert(sizeof(LossSum) == 16 && sizeof(AdamStep) == 40 && sizeof(GradientCheckState) == 32,
              "as step_block() counts them");

StepScalars::StepScalars(const StepBlockShape& shape)
    : shape_(shape), block_(step_block(shape)), image_(static_cast<std::size_t>(block_.uploaded)) {
  gradient_check() = {};
}

void StepScalars::upload(Device& device, std::byte* block, DeviceStream& stream) const {
  device.upload(block, image_, stream);
}

void StepScalars::download(Device& device, const std::byte* block, DeviceStream& stream) {
  device.download(std::span(image_).first(static_cast<std::size_t>(block_.downloaded)), block,
                  stream);
}

}  // namespace shardwise::exec
