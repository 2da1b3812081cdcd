#include "executor/cuda/cuda_platform.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "executor/comm/loopback_world.h"
#include "executor/comm/nccl/nccl_world.h"

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
  if (driver / 1000 < runtime / 1000) {
    problem_ = fmt::format("the NVIDIA driver here is for CUDA {}, and this program for CUDA {}",
                           version_text(driver), version_text(runtime));
    return;
  }
  const cudaError_t counted = cudaGetDeviceCount(&gpus_);
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && gpus_ == 0)) {
    absent_ = true;
    gpus_ = 0;
    problem_ = "the driver of NVIDIA's sees no GPU on this machine";
  } else if (counted != cudaSuccess) {
    gpus_ = 0;
    problem_ = fmt::format("{}; the driver is for CUDA {}",
                           problem_of_call("cudaGetDeviceCount", counted), version_text(driver));
  }
  static_cast<void>(cudaGetLastError());
}

DeviceFacts CudaPlatform::facts(int gpu) const { return gpu_facts(gpu, CudaCalls(gpu)); }

std::string CudaPlatform::problem_of_capability(int capability) const {
  if (runs_on(capability, SHARDWISE_CUDA_ARCHITECTURES)) return {};
  return fmt::format("compute capability {}.{} is none that this program has code for ({})",
                     capability / 10, capability % 10, SHARDWISE_CUDA_ARCHITECTURES);
}

std::vector<std::string> CudaPlatform::open_libraries(int ranks, const GpuOptions& options) {
  int driver = 0;
  int runtime = 0;
  if (const std::string problem = problem_of_versions(driver, runtime); !problem.empty()) {
    throw IoError(problem);
  }
  std::vector<std::string> lines = {
      fmt::format("CUDA {}, driver for CUDA {}", version_text(runtime), version_text(driver))};
  for (std::string& line : parts_.open_kernels()) lines.push_back(std::move(line));
  if (ranks > 1) {
    nccl_ = parts_.nccl();
    lines.push_back(fmt::format("{}, {}", nccl_->describe(), to_string(options.nccl)));
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
  } else if (place.ranks > 1) {
    if (place.sharing == GpuSharing::processes) apply_shared_gpu(place.rank);
    asked.world = [this, options, restart = place.restart](CudaDevice&, World& control, Compute&,
                                                           AbortSignal& abort) {
      return std::make_unique<NcclWorld>(*nccl_, control, options.nccl, restart, abort,
                                         options.timeout_s);
    };
  }
  return std::make_unique<CudaDevice>(place.gpu, place.rank, std::move(asked));
}

}  // namespace shardwise::exec
