#pragma once

#include <cstdint>
#include <string>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Choices of how NCCL is used. What is 0 or empty is left to NCCL.
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
  /// Policy of NCCL for compute: "default" (speed), "efficiency", or "zero" where copies do it.
  std::string cta_policy;
  /// NCCL_ALGO and NCCL_PROTO, for all communicators of the process: "ring", "ll128".
  std::string algorithm;
  std::string protocol;

  friend bool operator==(const NcclPolicy&, const NcclPolicy&) = default;
};

/// "max_ctas=16,symmetric_windows=on": fields that differ from the default.
Result<NcclPolicy> parse_nccl_policy(const std::string& text);
/// All fields, in the same form.
std::string to_string(const NcclPolicy& policy);

// NCCL reads its variables when the first communicator is made, and setting one while another
// thread reads any is a race: the functions below are of a process that has one thread of ranks.
// They take turns with one another, as threads that stand for processes call them in tests.

/// Variables NCCL_… of this process, "NCCL_ALGO=ring NCCL_DEBUG=WARN", but for the one that
/// apply_environment() always sets; empty where it has none.
std::string nccl_environment();
/// Gives algorithm and protocol to NCCL, and, unless the user has set it, that no graph with
/// collectives runs beside other collectives: a runner waits on the host between steps.
void apply_environment(const NcclPolicy& policy);
/// Has NCCL take this process for one on a host of its own: of one host it refuses two ranks on one
/// GPU. What the user has not set says that such hosts share no NVLink, and, where all ranks are on
/// one host, that they talk by its loopback. Source: NCCL's documentation, "Environment Variables";
/// NVIDIA/nccl, src/init.cc ("Duplicate GPU detected").
void apply_shared_gpu(int rank, bool one_host);
/// The policy of ranks that share a GPU: kernels of all of them wait for one another, so all have
/// to find room on it.
NcclPolicy policy_of_shared_gpu(const NcclPolicy& policy);

}  // namespace shardwise::exec
