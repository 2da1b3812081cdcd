#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/plan.h"
#include "simulator/workload.h"

namespace shardwise::sim {

/// NICs and up-links that can fail while all ranks still reach one another: all but one of each
/// node, and of each domain below an oversubscribed tier, that the layout uses. 0 where nodes have
/// one NIC, or nothing lies outside them.
std::int64_t spare_links(const Plan& plan);

/// By rank and tier, as Noise::link_delay, with `failed` links gone, drawn by `seed`: the links
/// that are left in a node or a domain carry the traffic of those that are gone, so while a byte is
/// on a link it takes n / (n - f) times as long. \pre failed <= spare_links(plan)
std::vector<TierFactors> detours(const Plan& plan, std::int64_t failed, std::uint64_t seed);

}  // namespace shardwise::sim
