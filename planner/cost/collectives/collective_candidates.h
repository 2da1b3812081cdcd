#pragma once

#include <array>
#include <cstdint>

#include "planner/cost/collectives/collective_links.h"

namespace shardwise {

enum class Algorithm : std::uint8_t { ring, tree, nvls, nvls_tree, collnet, pat, pairwise };
enum class Protocol : std::uint8_t { ll, ll128, simple };

/// One way to do a collective, with the parts of its time in seconds.
struct CollectiveCandidate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  double launch = 0;    // until the first byte moves
  double steps = 0;     // latencies on the way
  double transfer = 0;  // bytes over the slowest links
  double pipeline = 0;  // chunks in flight
  double seconds() const { return launch + steps + transfer + pipeline; }
};

/// Every way there is to do a collective; at least one when links.count > 0.
struct Candidates {
  std::array<CollectiveCandidate, 8> all;
  std::size_t count = 0;
  void add(const CollectiveCandidate& candidate) { all[count++] = candidate; }
  const CollectiveCandidate& best() const;
};

Candidates candidates(const GroupLinks& links, CollectiveKind kind, double bytes);

}  // namespace shardwise
