#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/nccl/nccl_policy.h"
#include "executor/device/device.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Choices of a user about GPUs.
struct GpuOptions {
  bool graphs = true;          // steady steps as CUDA graphs
  bool deterministic = false;  // JobSpec's: equal inputs give equal bits, run after run
  NcclPolicy nccl;             // between several
  std::string libraries;       // an absolute folder that has NVIDIA's; empty: the usual places
  double timeout_s = 600;      // that a rank waits for others, on the host or on its GPU
};

/// Whose a rank's GPU is.
enum class GpuSharing : std::uint8_t {
  own,        // the rank's alone
  threads,    // of several ranks, threads of this process
  processes,  // of several ranks, a process each
};

/// A rank and its GPU.
struct GpuPlace {
  int rank = 0;
  int ranks = 1;       // of the job
  int in_process = 1;  // ranks that are threads of this process
  int gpu = 0;         // of this process's host, as CUDA counts
  GpuSharing sharing = GpuSharing::own;
  bool one_host = true;      // has all ranks of the job
  std::int64_t restart = 0;  // how often the job was started again
};

/// The GPUs of this process's host and all that ranks need to use them. shardwise-run has it from a
/// library of its own (gpu_plugin.h).
class GpuPlatform {
 public:
  virtual ~GpuPlatform() = default;
  GpuPlatform() = default;
  GpuPlatform(const GpuPlatform&) = delete;
  GpuPlatform& operator=(const GpuPlatform&) = delete;

  /// Whether the host has neither a driver of NVIDIA's nor a GPU of theirs; problem() says which.
  virtual bool absent() const = 0;
  /// Why no GPU can be used, in one line; empty when they can.
  virtual std::string problem() const = 0;
  virtual int gpus() const = 0;
  /// Takes the GPU's context for this process. \throws IoError
  virtual DeviceFacts facts(int gpu) const = 0;
  /// Why no kernel of this build runs on a GPU of this capability; empty when they do.
  virtual std::string problem_of_capability(int capability) const = 0;
  /// Opens NVIDIA's libraries, NCCL only where it moves tensors, and sets NCCL's variables: before
  /// this process has threads of ranks. \param first  of this process's ranks \returns what they
  /// are and how they are used, a line each \throws IoError which says where one was looked for
  virtual std::vector<std::string> open_libraries(const GpuPlace& first,
                                                  const GpuOptions& options) = 0;
  /// A rank's GPU. The thread that calls is the rank's. \pre open_libraries()
  /// \throws IoError
  virtual std::unique_ptr<Device> device(const GpuPlace& place, const GpuOptions& options) = 0;
};

}  // namespace shardwise::exec
