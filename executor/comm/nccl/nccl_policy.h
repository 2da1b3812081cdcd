#pragma once

#include <cstdint>
#include <string>

#include "planner/spec/diagnostic.h"

namespace shardwise::exec {

/// How NCCL is used where there is a choice. What is 0 or empty is left to NCCL.
struct NcclPolicy {
  /// Blocks that a collective takes from compute: limits for each communicator.
  int min_ctas = 0;
  int max_ctas = 0;
  /// Gathers of parameters run beside reductions of gradients, on a communicator of their own.
  bool separate_all_gather = true;
  /// Buffers are registered, so that transports read and write them in place.
  bool register_buffers = false;
  /// Buffers are registered as symmetric windows. Never shown on several GPUs.
  bool symmetric_windows = false;
  /// NCCL_ALGO, for all communicators of the process: "ring", "tree", "nvls".
  std::string algorithm;

  friend bool operator==(const NcclPolicy&, const NcclPolicy&) = default;
};

/// "max_ctas=16,symmetric_windows=on": fields that differ from the default.
Result<NcclPolicy> parse_nccl_policy(const std::string& text);
/// All fields, in the same form.
std::string to_string(const NcclPolicy& policy);
/// Gives the algorithm to NCCL, which reads it when the first communicator is made.
void apply_environment(const NcclPolicy& policy);

/// Of a run whose ranks, a process each, share a GPU.
inline constexpr const char* kSharedGpu =
    "ranks share one GPU and move tensors through the host: timings mean nothing";
/// Has NCCL take this process for one on a host of its own: of one host it refuses two ranks on one
/// GPU. To be called before the first communicator is made. Source: NCCL's documentation,
/// "Environment Variables", NCCL_HOSTID; NVIDIA/nccl, src/init.cc ("Duplicate GPU detected").
void apply_shared_gpu(int rank);

}  // namespace shardwise::exec
