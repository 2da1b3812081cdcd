#include "executor/cuda/cuda_platform.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "executor/comm/loopback_world.h"
#include "executor/comm/nccl/nccl_world.h"
#include "executor/device/nvidia_library.h"

namespace shardwise::exec {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string problem_of_call(const char* call, cudaError_t result) {
  return fmt::format("{}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result));
}

/// Reads what the driver and the runtime are for. \returns why not; empty when they say it
std::string problem_of_versions(int& driver, int& runtime) {
  cudaError_t asked = cudaDriverGetVersion(&driver);
  if (asked != cudaSuccess) return problem_of_call("cudaDriverGetVersion", asked);
  asked = cudaRuntimeGetVersion(&runtime);
  return asked == cudaSuccess ? "" : problem_of_call("cudaRuntimeGetVersion", asked);
}

/// Of one entry: "90", "90-real", "90a-real", "120-virtual".
bool entry_runs_on(int capability, std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('-'));
  int architecture = 0;
  const auto [end, broken] = std::from_chars(name.data(), name.data() + name.size(), architecture);
  if (broken != std::errc()) return false;
  const bool specific = end != name.data() + name.size();  // "90a": that GPU alone
  if (specific) return capability == architecture;
  const bool real = !entry.ends_with("-virtual");
  const bool ptx = !entry.ends_with("-real");
  if (capability < architecture) return false;
  return ptx || (real && capability / 10 == architecture / 10);
}

// Source: NCCL user guide, "Using NCCL with CUDA Graphs": graphs of several GPUs of one process may
// deadlock, since cudaGraphLaunch may block; a single GPU per process is recommended.
constexpr const char* kNoGraphOfThreads =
    "ranks of one process move tensors by NCCL, whose graphs may wait for one another; run them as "
    "processes (--ranks-as processes, mpirun, torchrun or srun)";

bool moves_by_nccl(const GpuPlace& place) {
  return place.ranks > 1 && place.sharing != GpuSharing::threads;
}

NcclPolicy policy_of(const GpuPlace& place, const GpuOptions& options) {
  return place.sharing == GpuSharing::processes ? policy_of_shared_gpu(options.nccl) : options.nccl;
}

/// Memory that windows can be of. Where NCCL has none, it says so when memory is registered.
CudaDevice::Options::SharedMemory memory_of(const NcclLibrary& library, int rank) {
  const NcclCalls& calls = library.calls();
  if (calls.allocate_memory == nullptr || calls.free_memory == nullptr) return {};
  return {[calls, rank](std::size_t bytes) {
            void* memory = nullptr;
            const ncclResult_t result = calls.allocate_memory(&memory, bytes);
            if (result != ncclSuccess) {
              throw IoError(fmt::format("rank {}: ncclMemAlloc of {} bytes: {}", rank, bytes,
                                        calls.get_error_string(result)));
            }
            return memory;
          },
          [release = calls.free_memory](std::byte* at) { static_cast<void>(release(at)); }};
}

}  // namespace

bool runs_on(int capability, const std::string& architectures) {
  std::string_view rest = architectures;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (entry_runs_on(capability, rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

CudaPlatform::CudaPlatform(CudaParts parts) : parts_(std::move(parts)) { look(); }

void CudaPlatform::look() {
  int driver = 0;
  int runtime = 0;
  problem_ = problem_of_versions(driver, runtime);
  if (!problem_.empty()) return;
  if (driver == 0) {
    absent_ = true;
    problem_ = "there is no driver of NVIDIA's (libcuda.so.1) on this machine";
    return;
  }
  // A driver runs what any toolkit of its major version built, or of an earlier one. Source: CUDA
  // compatibility guide, "Minor version compatibility".
  const std::string both =
      fmt::format("the NVIDIA driver here is for CUDA {}, and this program for CUDA {}",
                  version_text(driver), version_text(runtime));
  if (driver / 1000 < runtime / 1000) {
    problem_ = both;
    return;
  }
  const cudaError_t counted = cudaGetDeviceCount(&gpus_);
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && gpus_ == 0)) {
    absent_ = true;
    gpus_ = 0;
    problem_ = "the driver of NVIDIA's sees no GPU on this machine";
  } else if (counted != cudaSuccess) {
    gpus_ = 0;
    problem_ = fmt::format("{}; {}", problem_of_call("cudaGetDeviceCount", counted), both);
  }
  static_cast<void>(cudaGetLastError());
}

DeviceFacts CudaPlatform::facts(int gpu) const { return gpu_facts(gpu, CudaCalls(gpu)); }

std::string CudaPlatform::problem_of_capability(int capability) const {
  if (runs_on(capability, parts_.architectures)) return {};
  return fmt::format("compute capability {}.{} is none that this program has code for ({})",
                     capability / 10, capability % 10, parts_.architectures);
}

std::vector<std::string> CudaPlatform::open_libraries(const GpuPlace& first,
                                                      const GpuOptions& options) {
  int driver = 0;
  int runtime = 0;
  if (const std::string problem = problem_of_versions(driver, runtime); !problem.empty()) {
    throw IoError(problem);
  }
  NvidiaLibrary::look_first_in(options.libraries);
  std::vector<std::string> lines = {
      fmt::format("CUDA {}, driver for CUDA {}", version_text(runtime), version_text(driver))};
  for (std::string& line : parts_.open_kernels()) lines.push_back(std::move(line));
  if (moves_by_nccl(first)) {
    nccl_ = parts_.nccl();
    const NcclPolicy policy = policy_of(first, options);
    const std::string given = nccl_environment();
    apply_environment(policy);
    if (first.sharing == GpuSharing::processes) apply_shared_gpu(first.rank, first.one_host);
    lines.push_back(fmt::format("{}, {}", nccl_->describe(), to_string(policy)));
    if (!given.empty()) lines.push_back("from the environment: " + given);
  }
  return lines;
}

std::unique_ptr<Device> CudaPlatform::device(const GpuPlace& place, const GpuOptions& options) {
  CudaDevice::Options asked;
  if (!options.graphs) asked.no_graph = "--no-graph";
  asked.compute = [this, options, rank = place.rank](CudaDevice& device) {
    return parts_.compute(device, rank, options);
  };
  if (place.sharing == GpuSharing::threads) {
    if (asked.no_graph.empty()) asked.no_graph = LoopbackWorld::kNoGraph;
    asked.world = [](CudaDevice& device, World& control, Compute& compute, AbortSignal&) {
      return std::make_unique<LoopbackWorld>(control, device, compute);
    };
  } else if (moves_by_nccl(place)) {
    if (asked.no_graph.empty() && place.in_process > 1) asked.no_graph = kNoGraphOfThreads;
    const NcclPolicy policy = policy_of(place, options);
    if (policy.register_buffers || policy.symmetric_windows) {
      asked.shared_memory = memory_of(*nccl_, place.rank);
    }
    asked.world = [this, policy, place, timeout_s = options.timeout_s](
                      CudaDevice&, World& control, Compute&, AbortSignal& abort) {
      return std::make_unique<NcclWorld>(*nccl_, place.gpu, control, policy, place.restart, abort,
                                         timeout_s);
    };
  }
  return std::make_unique<CudaDevice>(place.gpu, place.rank, std::move(asked));
}

}  // namespace shardwise::exec
