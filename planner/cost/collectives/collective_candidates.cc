#include "planner/cost/collectives/collective_candidates.h"

#include <algorithm>
#include <cmath>

#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

using Coefficients = CollectiveCoefficients;

constexpr double kMicrosecond = 1e-6;
constexpr std::array<Protocol, 3> kProtocols = {Protocol::ll, Protocol::ll128, Protocol::simple};

// Constants of NCCL's tuning model for what no measurement here shows: NVIDIA/nccl@dbc86fd
// (v2.28.9), src/graph/tuning.cc, ncclTopoTuneModel.
constexpr double kPatLaunch = 8.0 * kMicrosecond;
constexpr double kPatPerRank = 2.8 * kMicrosecond;
constexpr double kPatStep = 1 / 3.5;  // of a step of protocol Simple, for each doubling
constexpr double kPatShare = 0.75;
constexpr double kCollnetStep = 31.0 / 14.0;  // of a step of protocol Simple
constexpr double kCollnetPerRank = 0.8 * kMicrosecond;

double step(const Crossing& at, Protocol protocol) {
  const Coefficients& c = at.tier->collectives.coefficients;
  const double steps = protocol == Protocol::ll      ? c.ll_step
                       : protocol == Protocol::ll128 ? c.ll128_step
                                                     : c.simple_step;
  return steps * at.tier->latency.value();
}

/// Of one level of a tree.
double tree_step(const Crossing& at, Protocol protocol) {
  if (protocol != Protocol::simple) return step(at, protocol);
  return at.tier->collectives.coefficients.tree_simple_step * at.tier->latency.value();
}

double share(const Crossing& at, Protocol protocol) {
  const Coefficients& c = at.tier->collectives.coefficients;
  return protocol == Protocol::ll      ? c.ll_share
         : protocol == Protocol::ll128 ? c.ll128_share
                                       : c.simple_share;
}

/// Steps from the leaves of a tree to its root. Inside a domain NCCL chains the 8 GPUs of a node;
/// larger domains and everything between domains are binary trees.
constexpr double kChain = 8;
double depth(const Crossing& at, bool innermost) {
  if (!innermost) return std::log2(at.joined);
  return at.joined <= kChain ? at.joined - 1 : kChain - 1 + std::log2(at.joined / kChain);
}

/// A ring or, with `tree`, a double binary tree through all ranks.
/// \param rounds  times the buffer goes around: 2 for an all-reduce, else 1
/// \param sent    share of the buffer that a rank sends in one round
/// \param copied  share of the buffer that a rank only copies
CollectiveCandidate around(const GroupLinks& links, Protocol protocol, bool tree, double rounds,
                           double sent, double copied, double bytes) {
  CollectiveCandidate candidate;
  candidate.algorithm = tree ? Algorithm::tree : Algorithm::ring;
  candidate.protocol = protocol;
  candidate.launch = links.at[0].tier->collectives.coefficients.launch_us * kMicrosecond;
  double chunks = 0;  // seconds, of the steps that a chunk waits for others
  for (const Crossing& at : links) {
    const Coefficients& c = at.tier->collectives.coefficients;
    const bool innermost = &at == links.begin();
    const double hops = tree ? depth(at, innermost) : at.hops;
    candidate.steps += rounds * hops * (tree ? tree_step(at, protocol) : step(at, protocol));
    const double rate = at.rate * share(at, protocol) * (tree ? c.tree_share : 1);
    // Between two nodes each half of the tree has one edge: every byte crosses once each way.
    const double crossing = tree && !innermost && at.joined <= 2 ? 0.5 : 1;
    candidate.transfer = std::max(candidate.transfer, rounds * crossing * sent * bytes / rate);
    if (innermost) candidate.transfer += copied * bytes / rate;
    // A ring has a chunk for every rank in flight at all times, a tree must be filled.
    if (tree && protocol == Protocol::simple) {
      chunks += rounds * hops * c.tree_chunk_us * kMicrosecond;
    }
  }
  candidate.pipeline = 2 * std::sqrt(chunks * candidate.transfer);
  return candidate;
}

bool usable(const GroupLinks& links, Protocol protocol) {
  return std::all_of(links.begin(), links.end(),
                     [&](const Crossing& at) { return share(at, protocol) > 0; });
}

/// All-reduce with the sums formed in the switches of the innermost tier, and a tree or the
/// switches of the outer tier between its domains.
void add_in_network(const GroupLinks& links, double bytes, Candidates& found) {
  const Crossing& inner = links.at[0];
  const Coefficients& c = inner.tier->collectives.coefficients;
  const bool nvls = inner.tier->in_network == InNetwork::nvls && inner.joined >= c.in_network_ranks;
  CollectiveCandidate candidate;
  candidate.algorithm = Algorithm::nvls;
  if (nvls) {
    candidate.launch = c.in_network_us * kMicrosecond;
    candidate.transfer = bytes / (inner.rate * c.in_network_share);
  }
  if (links.one_domain()) {
    if (nvls) found.add(candidate);
    return;
  }
  const Crossing& outer = links.at[1];
  const Coefficients& o = outer.tier->collectives.coefficients;
  if (nvls) {
    CollectiveCandidate tree = candidate;
    tree.algorithm = Algorithm::nvls_tree;
    double chunks = 0;
    for (const Crossing& at : links) {
      if (&at == links.begin()) continue;
      const Coefficients& t = at.tier->collectives.coefficients;
      const double hops = 2 * depth(at, false);
      tree.steps += hops * tree_step(at, Protocol::simple);
      chunks += hops * t.tree_chunk_us * kMicrosecond;
      const double rate = at.rate * t.simple_share * t.tree_share;
      tree.transfer = std::max(tree.transfer, (at.joined <= 2 ? 1 : 2) * bytes / rate);
    }
    tree.pipeline = 2 * std::sqrt(chunks * tree.transfer);
    found.add(tree);
  }
  if (links.count == 2 && outer.tier->in_network == InNetwork::sharp &&
      outer.joined >= o.in_network_ranks) {
    CollectiveCandidate sharp = candidate;
    sharp.algorithm = Algorithm::collnet;
    sharp.steps = kCollnetStep * step(outer, Protocol::simple);
    if (!nvls) {
      sharp.launch = c.launch_us * kMicrosecond;
      sharp.steps += 2 * step(inner, Protocol::simple) + kCollnetPerRank * (inner.joined - 1);
      sharp.transfer = 2 * inner.beyond * bytes / (inner.rate * c.simple_share);
    }
    sharp.transfer = std::max(sharp.transfer, bytes / (outer.rate * o.in_network_share));
    found.add(sharp);
  }
}

/// Parallel aggregated trees: NCCL has them where each node has one rank of the group.
void add_pat(const GroupLinks& links, double bytes, Candidates& found) {
  if (!links.one_each) return;
  CollectiveCandidate candidate;
  candidate.algorithm = Algorithm::pat;
  candidate.launch = kPatLaunch;
  candidate.steps = kPatPerRank * links.ranks;
  for (const Crossing& at : links) {
    candidate.steps += std::log2(at.joined) * step(at, Protocol::simple) * kPatStep;
    const double rate = at.rate * share(at, Protocol::simple) * kPatShare;
    candidate.transfer = std::max(candidate.transfer, at.beyond * bytes / rate);
  }
  found.add(candidate);
}

/// Every rank with every other, or one with one other, by two protocols.
void add_pairs(const GroupLinks& links, bool all, double bytes, Candidates& found) {
  const Crossing& last = links.at[links.count - 1];
  const double launch = links.at[0].tier->collectives.coefficients.pair_launch_us * kMicrosecond;
  for (const Protocol protocol : {Protocol::ll, Protocol::simple}) {
    const bool simple = protocol == Protocol::simple;
    CollectiveCandidate candidate;
    candidate.algorithm = Algorithm::pairwise;
    candidate.protocol = protocol;
    candidate.launch = launch;
    bool used = true;
    double chunks = 0;
    for (const Crossing& at : links) {
      if (!all && &at != &last) continue;
      const Coefficients& c = at.tier->collectives.coefficients;
      // One message goes to one neighbour, as every one of a ring does.
      const double simple_share = all ? c.pair_simple_share : c.simple_share;
      const double pair_share = simple ? simple_share : c.pair_ll_share;
      used = used && pair_share > 0;
      const double peers = all ? at.peers : 1;
      candidate.steps += peers * c.pair_peer * at.tier->latency.value();
      if (simple) candidate.steps += c.pair_simple_us * kMicrosecond;
      const double sent = all ? at.beyond * bytes : bytes;
      candidate.transfer = std::max(candidate.transfer, sent / (at.rank_rate * pair_share));
      if (simple) chunks = std::max(chunks, c.pair_chunk_us * kMicrosecond);
    }
    candidate.pipeline = 2 * std::sqrt(chunks * candidate.transfer);
    if (used) found.add(candidate);
  }
}

}  // namespace

const CollectiveCandidate& Candidates::best() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (all[i].seconds() < all[best].seconds()) best = i;
  }
  return all[best];
}

Candidates candidates(const GroupLinks& links, CollectiveKind kind, double bytes) {
  // A group of several ranks meets on some tier, or its shape is wrong.
  SHARDWISE_CHECK(links.count > 0, "a group that no link tier joins");
  Candidates found;
  const double n = links.ranks;
  const double others = (n - 1) / n;
  const Coefficients& inner = links.at[0].tier->collectives.coefficients;
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: {
      const double copied =
          (kind == CollectiveKind::all_gather ? inner.copy_all_gather : inner.copy_reduce_scatter) /
          n;
      for (const Protocol protocol : kProtocols) {
        if (!usable(links, protocol)) continue;
        found.add(around(links, protocol, false, 1, others, copied, bytes));
      }
      add_pat(links, bytes, found);
      break;
    }
    case CollectiveKind::all_reduce:
      for (const Protocol protocol : kProtocols) {
        if (!usable(links, protocol)) continue;
        const double copied = inner.copy_all_reduce / n;
        found.add(around(links, protocol, false, 2, others, copied, bytes));
        if (!links.one_domain() || n > kChain) {
          found.add(around(links, protocol, true, 2, 1, 0, bytes));
        }
      }
      add_in_network(links, bytes, found);
      break;
    case CollectiveKind::broadcast:
      for (const Protocol protocol : kProtocols) {
        if (usable(links, protocol)) found.add(around(links, protocol, false, 1, 1, 0, bytes));
      }
      break;
    case CollectiveKind::all_to_all:
      add_pairs(links, true, bytes, found);
      break;
    case CollectiveKind::send_recv:
      add_pairs(links, false, bytes, found);
      break;
  }
  return found;
}

}  // namespace shardwise
