#include "executor/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/host_cuda/fake_cuda.h"

namespace shardwise::exec::test {
namespace {

TEST(CudaDevice, SaysWhatTheGpuIs) {
  fake_cuda::Machine machine;
  machine.name = "H100";
  machine.driver_version = 13010;
  fake_cuda::reset(1, machine);
  CudaDevice device(0, 0);
  const DeviceMemory memory = device.allocate(1000, MemorySpace::device);
  const DeviceFacts facts = device.facts();
  EXPECT_EQ(facts.name, "H100");
  EXPECT_EQ(facts.capability, 90);
  EXPECT_EQ(facts.driver_version, 13010);
  EXPECT_EQ(facts.runtime_version, 13000);
  EXPECT_EQ(facts.total_bytes, machine.total_bytes);
  EXPECT_EQ(facts.free_bytes, machine.total_bytes - 1000);
}

TEST(CudaDevice, CopiesMoreThanItsStagingThereAndBack) {
  fake_cuda::reset(2);
  std::vector<std::byte> there(2 * static_cast<std::size_t>(CudaDevice::kStagingBytes) + 5);
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = static_cast<std::byte>(i * i % 251);
  std::vector<std::byte> back(there.size());
  {
    CudaDevice device(0, 0);
    const auto stream = device.stream(StreamPriority::normal);
    const DeviceMemory memory =
        device.allocate(static_cast<std::int64_t>(there.size()), MemorySpace::device);
    device.upload(memory.at(), there, *stream);
    device.download(back, memory.at(), *stream);
  }
  EXPECT_EQ(back, there);
  EXPECT_THAT(fake_cuda::complaints(), testing::IsEmpty());
  EXPECT_EQ(fake_cuda::left_over(), "");
}

TEST(CudaDevice, GivesZeros) {
  fake_cuda::reset(3);
  CudaDevice device(0, 0);
  for (const MemorySpace space : {MemorySpace::host, MemorySpace::pinned, MemorySpace::device}) {
    const DeviceMemory memory = device.allocate(777, space);
    EXPECT_EQ(fake_cuda::is_device(memory.at(), 777), space == MemorySpace::device);
    EXPECT_EQ(fake_cuda::is_pinned(memory.at(), 777), space == MemorySpace::pinned);
    EXPECT_EQ(std::count(memory.at(), memory.at() + 777, std::byte{0}), 777);
  }
}

TEST(CudaDevice, HasStreamsWaitForEvents) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    fake_cuda::reset(seed);
    CudaDevice device(0, 0);
    const auto first = device.stream(StreamPriority::normal);
    const auto second = device.stream(StreamPriority::high);
    const auto event = device.event();
    int value = 0;
    int seen = -1;
    fake_cuda::enqueue(cuda_stream(*first).handle(), "write", [&] { value = 1; });
    device.record(*event, *first);
    device.wait(*second, *event);
    fake_cuda::enqueue(cuda_stream(*second).handle(), "read", [&] { seen = value; });
    device.synchronize(*second);
    EXPECT_EQ(seen, 1) << "seed " << seed;
    device.synchronize(*first);
  }
}

TEST(CudaDevice, SaysWhenThereIsTooLittleMemory) {
  fake_cuda::reset(4);
  CudaDevice device(0, 5);
  try {
    device.allocate(std::int64_t{2} << 30, MemorySpace::device);
    FAIL();
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_STREQ(error.what(), "rank 5: cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)");
  }
}

}  // namespace
}  // namespace shardwise::exec::test
