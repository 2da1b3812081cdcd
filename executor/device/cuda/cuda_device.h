#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_stream.h"
#include "executor/device/device.h"
#include "executor/kernels/compute/compute.h"

namespace shardwise::exec {

/// Facts of a GPU by CUDA; the calling thread uses it from then on. \throws CudaError
DeviceFacts gpu_facts(int number, const CudaCalls& calls);

/// One GPU for one rank, by CUDA's runtime. Of the thread that makes it and of those that call
/// cudaSetDevice() with the same number.
class CudaDevice : public Device {
 public:
  struct Options {
    // Why steady steps are to be no graphs; empty: they are.
    std::string no_graph = {};  // NOLINT(*-redundant-member-init): GCC asks for it
    /// Makes what compute() gives. The caller knows the kernels, this device does not.
    std::function<std::unique_ptr<Compute>(CudaDevice& device)> compute;
    /// Makes what world() gives, as compute. Without it `control` moves tensors: of one rank there
    /// are none.
    std::function<std::unique_ptr<World>(CudaDevice& device, World& control, Compute& compute,
                                         AbortSignal& abort)>
        world = {};  // NOLINT(*-redundant-member-init): GCC asks for it
    /// Memory of the GPU that other GPUs may map, in place of cudaMalloc's. \throws IoError
    struct SharedMemory {
      std::function<void*(std::size_t bytes)> take;
      DeviceMemory::Free free;
    };
    SharedMemory shared_memory = {};  // NOLINT(*-redundant-member-init): GCC asks for it
  };
  /// \param number  of the GPU, as CUDA counts  \param rank  for messages
  /// \throws CudaError
  CudaDevice(int number, int rank, Options options);
  CudaDevice(int number, int rank) : CudaDevice(number, rank, Options()) {}
  ~CudaDevice() override;

  DeviceFacts facts() const override;
  DeviceMemory allocate(std::int64_t bytes, MemorySpace space) override;
  std::unique_ptr<DeviceStream> stream(StreamPriority priority) override;
  std::unique_ptr<DeviceEvent> event() override;
  void record(DeviceEvent& event, DeviceStream& stream) override;
  void wait(DeviceStream& stream, const DeviceEvent& event) override;
  void synchronize(DeviceStream& stream) override;
  /// Copies by way of pinned memory; waits while more than kStagingBytes are under way.
  void upload(std::byte* to, std::span<const std::byte> from, DeviceStream& stream) override;
  void download(std::span<std::byte> to, const std::byte* from, DeviceStream& stream) override;
  /// \pre options have it
  std::unique_ptr<Compute> compute(int threads) override;
  std::unique_ptr<World> world(World& control, Compute& compute, AbortSignal& abort) override;
  std::unique_ptr<ProgramRunner> runner(const std::vector<const StageProgram*>& programs, int rank,
                                        AbortSignal& abort) override;

  static constexpr std::int64_t kStagingBytes = std::int64_t{4} << 20;

 private:
  DeviceMemory take(std::int64_t bytes, MemorySpace space);

  CudaCalls calls_;
  int number_;
  Options options_;
  CudaStream own_;        // of fills
  CudaEvent staged_;      // the last copy out of staging_ is over
  DeviceMemory staging_;  // pinned
};

}  // namespace shardwise::exec
