#include "executor/device/cpu/cpu_device.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "executor/comm/world.h"
#include "executor/device/cpu/stream_runner.h"
#include "executor/kernels/compute/cpu_compute.h"

namespace shardwise::exec {
namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

DeviceFacts CpuDevice::facts() const {
  DeviceFacts facts;
  facts.name = "cpu";
  struct sysinfo system {};
  if (::sysinfo(&system) != 0) return facts;
  facts.free_bytes = static_cast<std::int64_t>(system.freeram) * system.mem_unit;
  facts.total_bytes = static_cast<std::int64_t>(system.totalram) * system.mem_unit;
  return facts;
}

DeviceMemory CpuDevice::allocate(std::int64_t bytes, MemorySpace /*space*/) {
  const auto size = static_cast<std::size_t>(bytes);
  auto* const memory = static_cast<std::byte*>(::operator new[](size, kPage));
  std::memset(memory, 0, size);
  return {memory, bytes, [](std::byte* at) { ::operator delete[](at, kPage); }};
}

std::unique_ptr<DeviceStream> CpuDevice::stream(StreamPriority /*priority*/) {
  return std::make_unique<DeviceStream>();
}

std::unique_ptr<DeviceEvent> CpuDevice::event() { return std::make_unique<DeviceEvent>(); }

void CpuDevice::record(DeviceEvent& /*event*/, DeviceStream& /*stream*/) {}

void CpuDevice::wait(DeviceStream& /*stream*/, const DeviceEvent& /*event*/) {}

void CpuDevice::synchronize(DeviceStream& /*stream*/) {}

void CpuDevice::upload(std::byte* to, std::span<const std::byte> from, DeviceStream& /*stream*/) {
  std::ranges::copy(from, to);
}

void CpuDevice::download(std::span<std::byte> to, const std::byte* from, DeviceStream& /*stream*/) {
  std::copy_n(from, to.size(), to.begin());
}

std::unique_ptr<Compute> CpuDevice::compute(int threads) {
  return std::make_unique<CpuCompute>(threads);
}

std::unique_ptr<World> CpuDevice::world(World& /*control*/, Compute& /*compute*/,
                                        AbortSignal& /*abort*/) {
  return nullptr;
}

std::unique_ptr<ProgramRunner> CpuDevice::runner(const std::vector<const StageProgram*>& programs,
                                                 int rank, AbortSignal& abort) {
  return std::make_unique<StreamRunner>(programs, rank, abort);
}

}  // namespace shardwise::exec
