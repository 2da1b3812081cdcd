#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/world.h"
#include "executor/device/gpu_platform.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Kind that --device says; nothing: what the plan's cluster has.
enum class DeviceKind : std::uint8_t { planned, cpu, cuda };

/// Options a user asked of devices.
struct DeviceOptions {
  DeviceKind kind = DeviceKind::planned;
  bool share_gpu = false;
  std::int64_t restart = 0;  // how often the launcher started the job again
  GpuOptions gpus;
};

/// The ranks that use the GPUs of a host, as one of its processes sees them.
struct HostRanks {
  int first = 0;           // place of this process's first rank among those of its host
  int count = 1;           // of the host
  bool processes = false;  // else they are threads of this process
  bool all = true;         // ranks of the job are on the host
};

/// Devices a process's ranks compute on.
class RankDevices {
 public:
  /// Picks what runs it: GPUs where its cluster has some, else the CPU. A plan of a cluster with
  /// GPUs runs on the CPU where the machine has none and --device is not given; notes() say so.
  /// \param world  of this process's rank; null where ranks are threads of a process that is alone
  /// \returns what is wrong with the use \throws IoError when GPUs are there and cannot be used
  static Result<RankDevices> open(const Plan& plan, const DeviceOptions& options, World* world);

  bool on_gpus() const { return platform_ != nullptr; }
  /// The device of a rank of this process, for the thread that calls.
  std::unique_ptr<Device> device(int rank) const;
  /// Notes on what runs where and by which versions, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Why the time that steps take means nothing; empty where it does.
  const std::string& timings_note() const { return timings_note_; }

 private:
  GpuPlace place(int rank) const;

  std::unique_ptr<GpuPlatform> platform_;  // none on the CPU
  GpuOptions options_;
  std::int64_t restart_ = 0;
  int ranks_ = 1;
  int first_rank_ = 0;
  HostRanks host_;
  bool shared_ = false;
  std::string timings_note_;
  std::vector<std::string> notes_;
};

/// The GPUs of this machine and the libraries that ranks use them by, a line each; or why there are
/// none, or why they cannot be used, in one.
std::vector<std::string> describe_gpus();

/// The GPU is of another architecture than the plan's, for which kernels have other memory.
Diagnostics problems_of_architecture(const Plan& plan, const DeviceFacts& facts);
/// Less memory is free than the plan needs: both figures and the cheapest change that fits.
/// \param by_nccl  tensors move by it, whose communicators take memory too
Diagnostics problems_of_memory(const Plan& plan, const DeviceFacts& facts, bool by_nccl);
/// Ranks that have one GPU, though each should have its own.
Diagnostics problems_of_sharing(const std::vector<DeviceFacts>& by_rank);
/// GPUs that are not alike, by rank.
Diagnostics problems_of_mixture(const std::vector<DeviceFacts>& by_rank);

}  // namespace shardwise::exec
