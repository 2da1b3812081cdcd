#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// "all_gather", "all_to_all" …
std::string_view name_of(CollectiveKind kind);
/// Reads name_of()'s names, and nccl-tests' spellings: "alltoall", "sendrecv".
std::optional<CollectiveKind> collective_from_name(std::string_view name);

/// Bytes on the bus for each byte of the buffer: busbw = bus_factor x bytes / time.
/// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
double bus_factor(CollectiveKind kind, std::int64_t ranks);

/// Time of one collective among `group`, alone on its links except for the concurrent groups that
/// `group` states. The fastest of NCCL's algorithms and protocols; never below `collective_bound`,
/// grows with bytes. No allocation, well under a microsecond. docs/collectives.md.
///
/// \param bytes  size of the full buffer, as nccl-tests counts it: the gathered output of an
///               all-gather, the input of a reduce-scatter, what each rank sends in total of an
///               all-to-all, one message of a send_recv
Seconds collective_time(const ClusterSpec& cluster, CollectiveKind kind, Bytes bytes,
                        const GroupShape& group);

/// Bound that no implementation beats: bytes each link must carry over the link's bandwidth.
Seconds collective_bound(const ClusterSpec& cluster, CollectiveKind kind, Bytes bytes,
                         const GroupShape& group);

/// Account of how collective_time arrived at its number, for --explain.
struct CollectiveExplanation {
  Seconds time;
  Seconds bound;
  std::string algorithm;  // "ring", "tree", "nvls", "nvls_tree", "collnet", "pat", "pairwise"
  std::string protocol;   // "LL", "LL128", "Simple"
  double busbw_gb_per_s = 0;
  std::vector<std::string> steps;  // the formula with its values, one line each
  std::vector<std::string> sources;
};
CollectiveExplanation explain_collective(const ClusterSpec& cluster, CollectiveKind kind,
                                         Bytes bytes, const GroupShape& group);

}  // namespace shardwise
