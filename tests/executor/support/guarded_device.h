#pragma once

#include <sys/mman.h>

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "executor/device/cpu/cpu_device.h"

namespace shardwise::exec::test {

/// The CPU with memory that is there for operations and copies alone: while none runs, whoever
/// touches it ends the process. So is a GPU's for the host.
class GuardedDevice : public CpuDevice {
 public:
  DeviceMemory allocate(std::int64_t bytes, MemorySpace space) override {
    if (space != MemorySpace::device) return CpuDevice::allocate(bytes, space);
    const auto size = static_cast<std::size_t>(bytes);
    void* const at = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    blocks_.emplace_back(at, size);
    if (open_ > 0) protect(PROT_READ | PROT_WRITE);
    return {static_cast<std::byte*>(at), bytes, [](std::byte*) {}};
  }
  ~GuardedDevice() override {
    for (const auto& [at, size] : blocks_) ::munmap(at, size);
  }
  GuardedDevice() = default;
  GuardedDevice(const GuardedDevice&) = delete;
  GuardedDevice& operator=(const GuardedDevice&) = delete;

  void upload(std::byte* to, std::span<const std::byte> from, DeviceStream& stream) override {
    const Open open(*this);
    CpuDevice::upload(to, from, stream);
  }
  void download(std::span<std::byte> to, const std::byte* from, DeviceStream& stream) override {
    const Open open(*this);
    CpuDevice::download(to, from, stream);
  }
  std::unique_ptr<ProgramRunner> runner(const std::vector<const StageProgram*>& programs, int rank,
                                        AbortSignal& abort) override {
    return std::make_unique<Runner>(*this, CpuDevice::runner(programs, rank, abort));
  }

 private:
  class Open {
   public:
    explicit Open(GuardedDevice& device) : device_(device) {
      const std::lock_guard lock(device_.mutex_);
      if (device_.open_++ == 0) device_.protect(PROT_READ | PROT_WRITE);
    }
    ~Open() {
      const std::lock_guard lock(device_.mutex_);
      if (--device_.open_ == 0) device_.protect(PROT_NONE);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    GuardedDevice& device_;
  };

  class Runner : public ProgramRunner {
   public:
    Runner(GuardedDevice& device, std::unique_ptr<ProgramRunner> of)
        : device_(device), of_(std::move(of)) {}
    void run(std::size_t program, const OpKernels& kernels, Spans spans) override {
      const Open open(device_);
      of_->run(program, kernels, spans);
    }
    std::span<const OpSpan> spans() const override { return of_->spans(); }

   private:
    GuardedDevice& device_;
    std::unique_ptr<ProgramRunner> of_;
  };

  void protect(int what) {
    for (const auto& [at, size] : blocks_) ::mprotect(at, size, what);
  }

  std::mutex mutex_;
  int open_ = 0;
  std::vector<std::pair<void*, std::size_t>> blocks_;
};

}  // namespace shardwise::exec::test
