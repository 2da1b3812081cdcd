#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "planner/cost/software/time_rules.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

// Rules by which operations that run at once share links, multiprocessors and memory bandwidth.
// docs/simulator.md, "Links" to "Memory bandwidth".

/// Which ways of a link a stream uses, and whether it runs kernels of the model.
constexpr bool sends(Stream stream) { return stream != Stream::receive; }
constexpr bool receives(Stream stream) { return stream != Stream::send; }
constexpr bool computes(Stream stream) {
  return stream == Stream::compute || stream == Stream::copy;
}

/// Shares of a link are whole numbers, so that their sum does not depend on the order in which
/// ranks are added: the representative of four ranks adds what the four would.
inline constexpr double kWholeLink = 0x1p32;

/// Demand on a link, both ways.
struct Demand {
  std::int64_t out = 0;
  std::int64_t in = 0;

  /// Times longer than alone a transfer takes on the ways that its stream uses of a link as
  /// fast as `capacity` links of the tier.
  double crowding(Stream stream, double capacity) const {
    const std::int64_t most = std::max(sends(stream) ? out : 0, receives(stream) ? in : 0);
    return std::max(1.0, static_cast<double>(most) / (kWholeLink * capacity));
  }
  bool crowds(double capacity) const {
    return static_cast<double>(std::max(out, in)) > kWholeLink * capacity;
  }
  friend bool operator==(const Demand&, const Demand&) = default;
};

/// Demand of a rank's running operations on its own links, multiprocessors and memory.
struct Load {
  std::array<Demand, kMaxTiers> links{};
  OverlapTax tax;
  double moving = 0;   // share of the memory bandwidth that transfers would take
  double bound = 0;    // kernels on both streams that memory bandwidth limits, on average
  double threads = 0;  // of a CPU that ranks share

  void add(Stream stream, const CostPrice& price) {
    threads += price.threads;
    if (computes(stream)) {
      bound += price.memory_share;
      return;
    }
    moving += price.memory_share;
    // Each collective has multiprocessors of its own; a second wave comes once.
    tax.other += price.tax.other;
    tax.gemm = std::max(tax.gemm, price.tax.gemm);
    for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
      const auto share = static_cast<std::int64_t>(price.link_share[tier] * kWholeLink);
      if (sends(stream)) links[tier].out += share;
      if (receives(stream)) links[tier].in += share;
    }
  }

  /// Kernels lose multiprocessors, at most half of them; those that memory bandwidth limits lose
  /// that, if it is more. 1 = as fast as alone.
  double compute_rate(const CostPrice& price) const {
    if (price.threads > 0) return std::min(1.0, price.room / threads);
    const double rest = 1 - price.gemm_share - price.moved_share;
    const double rate = 1 - std::min(kMostOverlapTax, tax.of(price.gemm_share, rest));
    const double others = moving + bound - price.memory_share;
    const double more = others / (1 + others) - std::min(kMostOverlapTax, tax.other);
    return rate - price.memory_share * std::max(0.0, more);
  }
  /// Times longer than alone a transfer takes beside such kernels: while they run, all that
  /// use the memory get their proportion of it.
  double memory_crowding(const CostPrice& price) const {
    if (price.threads > 0) return std::max(1.0, threads / price.room);
    if (price.memory_share == 0 || bound == 0) return 1;
    return bound > 1 ? bound + moving : 1 / (1 - bound * moving / (1 + moving));
  }
  bool operator==(const Load& other) const {
    return links == other.links && tax.gemm == other.tax.gemm && tax.other == other.tax.other &&
           moving == other.moving && bound == other.bound && threads == other.threads;
  }
};

}  // namespace shardwise::sim
