#pragma once

#include <array>
#include <string>
#include <string_view>

#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// How far one tier of links is from its data sheet when a collective uses it. docs/collectives.md
/// has the formula. Steps are in units of the tier's latency, shares in units of its bandwidth.
/// The defaults are those of NCCL's own tuning model.
struct CollectiveCoefficients {
  double launch_us = 6.6;  // from the call to the first byte; the innermost tier's counts
  // Rings and trees, by protocol. A share of 0 means the protocol is not used on these links.
  double ll_step = 1.0;
  double ll128_step = 1.7;
  double simple_step = 2.8;
  double ll_share = 0.25;
  double ll128_share = 0.75;
  double simple_share = 0.82;
  // Trees use the same, but for protocol Simple, in which a level must be filled with chunks.
  double tree_simple_step = 2.8;
  double tree_share = 0.92;     // of the shares above
  double tree_chunk_us = 0.25;  // one more chunk in flight
  // A rank's own part of the buffer, moved too, in units of a part sent.
  double copy_all_gather = 0.5;
  double copy_reduce_scatter = 0.5;
  double copy_all_reduce = 0.5;
  // Reduction in the switches of the tier, where it has that.
  double in_network_ranks = 5;  // fewest ranks for which it is chosen
  double in_network_us = 25;
  double in_network_share = 0.55;
  // Pairs: all-to-all, and send-receive but for the share of its bandwidth, which is the ring's.
  double pair_launch_us = 7;
  double pair_peer = 0.15;  // one more peer, in latencies
  double pair_ll_share = 0.02;
  double pair_simple_us = 4;  // what protocol Simple adds to the launch
  double pair_simple_share = 0.7;
  double pair_chunk_us = 1;
  friend bool operator==(const CollectiveCoefficients&, const CollectiveCoefficients&) = default;
};

/// A coefficient by its JSON key, with the range it may have.
struct CoefficientName {
  std::string_view key;
  double CollectiveCoefficients::*field;
  double low;
  double high;
};
inline constexpr std::array<CoefficientName, 22> kCoefficients = {{
    {"launch_us", &CollectiveCoefficients::launch_us, 0, 1e5},
    {"ll_step", &CollectiveCoefficients::ll_step, 0, 1e5},
    {"ll128_step", &CollectiveCoefficients::ll128_step, 0, 1e5},
    {"simple_step", &CollectiveCoefficients::simple_step, 0, 1e5},
    {"ll_share", &CollectiveCoefficients::ll_share, 0, 1},
    {"ll128_share", &CollectiveCoefficients::ll128_share, 0, 1},
    {"simple_share", &CollectiveCoefficients::simple_share, 1e-4, 1},
    {"tree_simple_step", &CollectiveCoefficients::tree_simple_step, 0, 1e5},
    {"tree_share", &CollectiveCoefficients::tree_share, 1e-4, 1},
    {"tree_chunk_us", &CollectiveCoefficients::tree_chunk_us, 0, 1e5},
    {"copy_all_gather", &CollectiveCoefficients::copy_all_gather, 0, 1},
    {"copy_reduce_scatter", &CollectiveCoefficients::copy_reduce_scatter, 0, 1},
    {"copy_all_reduce", &CollectiveCoefficients::copy_all_reduce, 0, 1},
    {"in_network_ranks", &CollectiveCoefficients::in_network_ranks, 2, 1e6},
    {"in_network_us", &CollectiveCoefficients::in_network_us, 0, 1e5},
    {"in_network_share", &CollectiveCoefficients::in_network_share, 1e-4, 1},
    {"pair_launch_us", &CollectiveCoefficients::pair_launch_us, 0, 1e5},
    {"pair_peer", &CollectiveCoefficients::pair_peer, 0, 1e5},
    {"pair_ll_share", &CollectiveCoefficients::pair_ll_share, 0, 1},
    {"pair_simple_us", &CollectiveCoefficients::pair_simple_us, 0, 1e5},
    {"pair_simple_share", &CollectiveCoefficients::pair_simple_share, 1e-4, 1},
    {"pair_chunk_us", &CollectiveCoefficients::pair_chunk_us, 0, 1e5},
}};
static_assert(sizeof(CollectiveCoefficients) == kCoefficients.size() * sizeof(double),
              "list the new coefficient above");

/// The collective model of one kind of link: configs/collectives, or inside a cluster file.
struct CollectiveCurve {
  std::string name = "default";
  CollectiveCoefficients coefficients;
  FitRecord fit = {false, "", "constants of NCCL's tuning model", 0, 0, 0};
  friend bool operator==(const CollectiveCurve&, const CollectiveCurve&) = default;
};

}  // namespace shardwise
