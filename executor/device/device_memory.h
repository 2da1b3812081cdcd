#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace shardwise::exec {

/// Where a block of memory is, and who reads it fast.
enum class MemorySpace : std::uint8_t {
  host,    // the host's own
  pinned,  // the host's, at an address that the device copies from and to while the host goes on
  device,  // the device's; on the CPU the host's own
};

/// A block of memory that a device gave, freed with its owner. The device outlives it.
class DeviceMemory {
 public:
  using Free = std::function<void(std::byte*)>;
  DeviceMemory() = default;
  DeviceMemory(std::byte* memory, std::int64_t bytes, Free free)
      : memory_(memory, std::move(free)), bytes_(bytes) {}

  std::byte* at() const { return memory_.get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace shardwise::exec
