// Two micro-batches of three tokens; every range of the block begins at a multiple of 128:
//   losses 0, gradient norm 128, gradient check 256 (read after a step: 288 bytes), AdamW 384,
//   loss scales 512, tokens 640, inputs 768, targets 896 (written before it: 944 bytes).
#include "executor/engine/step_scalars.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "executor/device/cpu/cpu_device.h"

namespace shardwise::exec {
namespace {

constexpr StepBlockShape kShape = {.microbatches = 2, .tokens = 3};
constexpr auto kUntouched = std::byte{0xEE};

/// The block in a device's memory.
class Block {
 public:
  Block() : bytes_(static_cast<std::size_t>(step_block(kShape).bytes), kUntouched) {}
  std::byte* data() { return bytes_.data(); }
  template <class T>
  T at(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  template <class T>
  void put(std::size_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  bool untouched_from(std::size_t offset) const {
    return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes_.end(),
                       [](std::byte each) { return each == kUntouched; });
  }

 private:
  std::vector<std::byte> bytes_;
};

TEST(StepScalars, UploadsWhatTheHostWritesWhereOperationsReadIt) {
  StepScalars scalars(kShape);
  for (std::size_t mb = 0; mb < 2; ++mb) {
    for (std::size_t i = 0; i < 3; ++i) {
      scalars.inputs(mb)[i] = static_cast<std::int64_t>(10 * mb + i);
      scalars.targets(mb)[i] = -scalars.inputs(mb)[i];
    }
    scalars.loss_scale(mb) = 0.5F + static_cast<float>(mb);
  }
  scalars.own_tokens() = 6;
  scalars.adam_step().learning_rate = 0.25F;
  CpuDevice device;
  DeviceStream stream;
  Block block;
  scalars.upload(device, block.data(), stream);
  EXPECT_EQ(block.at<float>(384), 0.25F);
  EXPECT_EQ(block.at<float>(512), 0.5F);
  EXPECT_EQ(block.at<float>(516), 1.5F);
  EXPECT_EQ(block.at<std::int64_t>(640), 6);
  EXPECT_EQ(block.at<std::int64_t>(768 + 2 * 8), 2);   // third token of the first
  EXPECT_EQ(block.at<std::int64_t>(768 + 5 * 8), 12);  // and of the second micro-batch
  EXPECT_EQ(block.at<std::int64_t>(896 + 5 * 8), -12);
  EXPECT_TRUE(block.untouched_from(944));
}

TEST(StepScalars, BeginsWithNoGradientFoundWrongAndNoLoss) {
  StepScalars scalars(kShape);
  EXPECT_LT(scalars.gradient_check().bucket, 0);
  ASSERT_EQ(scalars.losses().size(), 2U);
  EXPECT_EQ(scalars.losses()[1].tokens, 0);
}

TEST(StepScalars, DownloadsWhatOperationsFoundAndNothingElse) {
  StepScalars scalars(kShape);
  scalars.adam_step().gradient_scale = 1;
  CpuDevice device;
  DeviceStream stream;
  Block block;
  scalars.upload(device, block.data(), stream);
  block.put(16, LossSum{2.5, 3});
  block.put(128, 7.0);
  GradientCheckState found;
  found.bucket = 4;
  block.put(256, found);
  block.put(384 + 4 * sizeof(float), 0.125F);  // the clip factor stays on the device
  scalars.download(device, block.data(), stream);
  EXPECT_EQ(scalars.losses()[1].loss, 2.5);
  EXPECT_EQ(scalars.losses()[1].tokens, 3);
  EXPECT_EQ(scalars.gradient_norm(), 7);
  EXPECT_EQ(scalars.gradient_check().bucket, 4);
  EXPECT_EQ(scalars.adam_step().gradient_scale, 1);
}

}  // namespace
}  // namespace shardwise::exec
