#pragma once

#include <memory>
#include <vector>

#include "executor/device/device.h"

namespace shardwise::exec {

/// The host's processors and memory. What is issued to a stream is done when the call returns, so
/// that events and waits have nothing to do.
class CpuDevice : public Device {
 public:
  DeviceFacts facts() const override;
  /// \throws std::bad_alloc
  DeviceMemory allocate(std::int64_t bytes, MemorySpace space) override;
  std::unique_ptr<DeviceStream> stream(StreamPriority priority) override;
  std::unique_ptr<DeviceEvent> event() override;
  void record(DeviceEvent& event, DeviceStream& stream) override;
  void wait(DeviceStream& stream, const DeviceEvent& event) override;
  void synchronize(DeviceStream& stream) override;
  void upload(std::byte* to, std::span<const std::byte> from, DeviceStream& stream) override;
  void download(std::span<std::byte> to, const std::byte* from, DeviceStream& stream) override;
  std::unique_ptr<Compute> compute(int threads) override;
  std::unique_ptr<World> world(World& control, Compute& compute, AbortSignal& abort) override;
  std::unique_ptr<ProgramRunner> runner(const std::vector<const StageProgram*>& programs, int rank,
                                        AbortSignal& abort) override;
};

}  // namespace shardwise::exec
