#include "executor/device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "executor/comm/world.h"
#include "executor/device/cuda/cuda_runner.h"

namespace shardwise::exec {
namespace {

constexpr std::align_val_t kPage{4096};

/// Those of a rank whose thread calls of the GPU from now on.
CudaCalls calls_on(int number, int rank) {
  const CudaCalls calls(rank);
  calls.check(cudaSetDevice(number), "cudaSetDevice");
  return calls;
}

/// "GPU-11223344-5566-7788-99aa-bbccddeeff00".
std::string text_of(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || (i >= 4 && i <= 10 && i % 2 == 0)) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

DeviceFacts gpu_facts(int number, const CudaCalls& calls) {
  calls.check(cudaSetDevice(number), "cudaSetDevice");
  DeviceFacts facts;
  cudaDeviceProp properties{};
  calls.check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  facts.name = properties.name;
  facts.uuid = text_of(properties.uuid);
  facts.capability = 10 * properties.major + properties.minor;
  std::size_t free = 0;
  std::size_t total = 0;
  calls.check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  facts.free_bytes = static_cast<std::int64_t>(free);
  facts.total_bytes = static_cast<std::int64_t>(total);
  calls.check(cudaDriverGetVersion(&facts.driver_version), "cudaDriverGetVersion");
  calls.check(cudaRuntimeGetVersion(&facts.runtime_version), "cudaRuntimeGetVersion");
  return facts;
}

CudaDevice::CudaDevice(int number, int rank, Options options)
    : calls_(calls_on(number, rank)),
      number_(number),
      options_(std::move(options)),
      own_(calls_, StreamPriority::normal),
      staged_(calls_, false),
      staging_(take(kStagingBytes, MemorySpace::pinned)) {}

CudaDevice::~CudaDevice() {
  // What is under way reads staging_. An error has been said where it came from.
  static_cast<void>(cudaStreamSynchronize(own_.handle()));
}

DeviceFacts CudaDevice::facts() const { return gpu_facts(number_, calls_); }

DeviceMemory CudaDevice::allocate(std::int64_t bytes, MemorySpace space) {
  return take(bytes, space);
}

DeviceMemory CudaDevice::take(std::int64_t bytes, MemorySpace space) {
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = nullptr;
  DeviceMemory::Free free;
  if (space == MemorySpace::host) {
    memory = ::operator new[](size, kPage);
    free = [](std::byte* at) { ::operator delete[](at, kPage); };
  } else if (space == MemorySpace::pinned) {
    calls_.check(cudaHostAlloc(&memory, size, cudaHostAllocDefault), "cudaHostAlloc");
    free = [](std::byte* at) { static_cast<void>(cudaFreeHost(at)); };
  } else if (options_.shared_memory.take) {
    memory = options_.shared_memory.take(size);
    free = options_.shared_memory.free;
  } else {
    calls_.check(cudaMalloc(&memory, size), "cudaMalloc");
    free = [](std::byte* at) { static_cast<void>(cudaFree(at)); };
  }
  DeviceMemory owned(static_cast<std::byte*>(memory), bytes, std::move(free));
  if (space != MemorySpace::device) {
    std::memset(memory, 0, size);
  } else {
    calls_.check(cudaMemsetAsync(memory, 0, size, own_.handle()), "cudaMemsetAsync");
    own_.synchronize();
  }
  return owned;
}

std::unique_ptr<DeviceStream> CudaDevice::stream(StreamPriority priority) {
  return std::make_unique<CudaStream>(calls_, priority);
}

std::unique_ptr<DeviceEvent> CudaDevice::event() {
  return std::make_unique<CudaEvent>(calls_, false);
}

void CudaDevice::record(DeviceEvent& event, DeviceStream& stream) {
  static_cast<CudaEvent&>(event).record(cuda_stream(stream));
}

void CudaDevice::wait(DeviceStream& stream, const DeviceEvent& event) {
  static_cast<const CudaEvent&>(event).hold(cuda_stream(stream));
}

void CudaDevice::synchronize(DeviceStream& stream) { cuda_stream(stream).synchronize(); }

void CudaDevice::upload(std::byte* to, std::span<const std::byte> from, DeviceStream& stream) {
  while (!from.empty()) {
    staged_.synchronize();
    const std::size_t piece = std::min(from.size(), static_cast<std::size_t>(kStagingBytes));
    std::memcpy(staging_.at(), from.data(), piece);
    calls_.check(cudaMemcpyAsync(to, staging_.at(), piece, cudaMemcpyHostToDevice,
                                 cuda_stream(stream).handle()),
                 "cudaMemcpyAsync");
    staged_.record(cuda_stream(stream));
    to += piece;
    from = from.subspan(piece);
  }
}

void CudaDevice::download(std::span<std::byte> to, const std::byte* from, DeviceStream& stream) {
  while (!to.empty()) {
    staged_.synchronize();
    const std::size_t piece = std::min(to.size(), static_cast<std::size_t>(kStagingBytes));
    calls_.check(cudaMemcpyAsync(staging_.at(), from, piece, cudaMemcpyDeviceToHost,
                                 cuda_stream(stream).handle()),
                 "cudaMemcpyAsync");
    cuda_stream(stream).synchronize();
    std::memcpy(to.data(), staging_.at(), piece);
    from += piece;
    to = to.subspan(piece);
  }
}

std::unique_ptr<Compute> CudaDevice::compute(int /*threads*/) { return options_.compute(*this); }

std::unique_ptr<World> CudaDevice::world(World& control, Compute& compute, AbortSignal& abort) {
  if (!options_.world) return nullptr;
  return options_.world(*this, control, compute, abort);
}

std::unique_ptr<ProgramRunner> CudaDevice::runner(const std::vector<const StageProgram*>& programs,
                                                  int rank, AbortSignal& abort) {
  return std::make_unique<CudaRunner>(programs, rank, abort, options_.no_graph);
}

}  // namespace shardwise::exec
