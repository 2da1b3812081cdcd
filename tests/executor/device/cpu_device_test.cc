#include "executor/device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace shardwise::exec {
namespace {

TEST(CpuDevice, GivesZerosOnPages) {
  CpuDevice device;
  for (const MemorySpace space : {MemorySpace::host, MemorySpace::pinned, MemorySpace::device}) {
    const DeviceMemory memory = device.allocate(10'000, space);
    ASSERT_EQ(memory.bytes(), 10'000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.at()) % 4096, 0U);
    EXPECT_TRUE(std::all_of(memory.at(), memory.at() + memory.bytes(),
                            [](std::byte each) { return each == std::byte{0}; }));
  }
}

TEST(CpuDevice, CopiesThereAndBack) {
  CpuDevice device;
  const auto stream = device.stream(StreamPriority::normal);
  const DeviceMemory memory = device.allocate(3, MemorySpace::device);
  const std::array<std::byte, 3> there = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> back{};
  device.upload(memory.at(), there, *stream);
  device.download(back, memory.at(), *stream);
  EXPECT_EQ(back, there);
}

TEST(CpuDevice, SaysHowMuchMemoryTheMachineHas) {
  const DeviceFacts facts = CpuDevice().facts();
  EXPECT_EQ(facts.name, "cpu");
  EXPECT_GT(facts.free_bytes, 0);
  EXPECT_GT(facts.total_bytes, facts.free_bytes);
}

}  // namespace
}  // namespace shardwise::exec
