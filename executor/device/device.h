#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/device/device_memory.h"
#include "executor/device/stream.h"
#include "executor/engine/program_runner.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

class Compute;
class World;

/// Facts that a device states of itself, for messages and reports.
struct DeviceFacts {
  std::string name;
  std::string uuid;             // of a GPU, as nvidia-smi spells it; empty on the CPU
  int capability = 0;           // 10 * major + minor of CUDA's; 0 on the CPU
  std::int64_t free_bytes = 0;  // of its memory, now
  std::int64_t total_bytes = 0;
  int driver_version = 0;   // 1000 * major + 10 * minor of the CUDA that the driver runs; 0: none
  int runtime_version = 0;  // likewise, of the runtime this was built with
};

enum class StreamPriority : std::uint8_t {
  normal,
  high,  // its work goes ahead of others' where both could run: communication
};

/// A point of a stream that other streams and the host wait for.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  DeviceEvent() = default;
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
};

/// Processor of one rank. Nothing waits for the device but what says so.
///
/// Streams, events and memory are of the device that gave them and end before it. A call that the
/// device refuses throws the device's own exception, which names the call.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceFacts facts() const = 0;
  /// Zeros, at an address that 4096 divides. Waits.
  virtual DeviceMemory allocate(std::int64_t bytes, MemorySpace space) = 0;
  virtual std::unique_ptr<DeviceStream> stream(StreamPriority priority) = 0;
  virtual std::unique_ptr<DeviceEvent> event() = 0;
  /// Records the event after everything issued to the stream so far; recording it again moves it.
  virtual void record(DeviceEvent& event, DeviceStream& stream) = 0;
  /// Work issued to the stream from here on begins after the event; now, if it was never recorded.
  virtual void wait(DeviceStream& stream, const DeviceEvent& event) = 0;
  /// Waits until all that was issued to the stream is over.
  virtual void synchronize(DeviceStream& stream) = 0;
  /// Copies bytes of the host into memory of the device, in the stream's order. `from` may be
  /// written again when this returns.
  virtual void upload(std::byte* to, std::span<const std::byte> from, DeviceStream& stream) = 0;
  /// Copies memory of the device to the host, behind what was issued to the stream. Waits.
  virtual void download(std::span<std::byte> to, const std::byte* from, DeviceStream& stream) = 0;
  /// The operations of one rank's layers and state on this device, which outlives it.
  /// \param threads  of the host that compute, where it is the host that computes
  virtual std::unique_ptr<Compute> compute(int threads) = 0;
  /// World in which ranks move tensors of this device; `control` goes on to move host bytes. All
  /// ranks call together. Null where `control` moves tensors as well.
  /// \param control  the job's ranks  \param compute  of this device; both outlive the world
  virtual std::unique_ptr<World> world(World& control, Compute& compute, AbortSignal& abort) = 0;
  /// Runner of programs on this device. \param programs outlive it \param rank for messages
  virtual std::unique_ptr<ProgramRunner> runner(const std::vector<const StageProgram*>& programs,
                                                int rank, AbortSignal& abort) = 0;
};

}  // namespace shardwise::exec
