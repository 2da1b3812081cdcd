#pragma once

#include <cstdint>

#include "planner/cost/collectives/tier_traffic.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// Engine that moves the bytes of collectives, which decides how much of compute they take.
enum class Transport : std::uint8_t {
  usual,         // NCCL with its own buffers
  registered,    // user buffers registered with NCCL: NVLS, SHARP and fewer channels
  copy_engines,  // no multiprocessor at all, inside a node
};

/// Tax of a collective on the compute beside it. docs/simulator.md, "Multiprocessors".
OverlapTax communication_tax(const Plan& plan, bool across_nodes, Transport transport);

/// Bytes that a transfer reads from and writes to a rank's memory for what it sends and receives.
/// docs/simulator.md, "Memory bandwidth".
double memory_traffic(const CollectiveWork& work, const ClusterSpec& cluster, const Layout& layout,
                      Transport transport);

/// Prices of every cost of a lowered plan: time alone and kernels to issue from planner/lowering
/// and planner/cost, shares of links, memory bandwidth and compute for contention. Compute is as
/// slow as on the slowest GPU of the cluster. \pre the program was lowered from the plan
Prices prices_of(const Plan& plan, const StepProgram& program, Transport transport);

/// Bytes that one rank sends for a collective, all its steps together.
TierTraffic traffic_of(const CollectiveWork& work, const ClusterSpec& cluster,
                       const Layout& layout);

}  // namespace shardwise::sim
