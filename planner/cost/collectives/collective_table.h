#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>

#include "planner/cost/collectives/collective.h"
#include "planner/cost/collectives/tier_traffic.h"

namespace shardwise {

/// collective_time of one kind and group over bytes, read off a table: exact at 2^k and 1.5 x 2^k
/// bytes from 256 B to 16 TiB. Between two points, the faster of two ways to do it, the best at
/// either point, each on a line between what it takes at both: exact for rings, whose time is
/// linear in bytes, wherever NCCL changes from one to another. No line is below collective_bound,
/// which is proportional to bytes.
///
/// Made once per (kind, group shape); a plain value of 2.3 KiB, read in a few nanoseconds.
class CollectiveTable {
 public:
  /// A group of one rank: every collective takes no time.
  CollectiveTable() = default;
  CollectiveTable(const ClusterSpec& cluster, CollectiveKind kind, const GroupShape& group);

  /// \pre bytes >= 0
  Seconds operator()(double bytes) const {
    if (bytes <= 0) return Seconds(0);
    const double clamped = bytes < kSmallest ? kSmallest : bytes;
    // The exponent and the first bit of the mantissa number the interval.
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(clamped);
    const std::uint64_t interval = (bits >> 51U) - (std::bit_cast<std::uint64_t>(kSmallest) >> 51U);
    const std::size_t i = interval < kPoints - 2 ? interval : kPoints - 2;
    const double offset = clamped - start_of(i);
    const auto& [one, other] = lines_[i];
    return Seconds(
        std::min(one.seconds + offset * one.slope, other.seconds + offset * other.slope));
  }
  /// Time that one link of a tier is busy with what one rank sends over it.
  Seconds on_wire(std::size_t tier, double bytes) const {
    return Seconds(bytes * a_byte_.seconds[tier]);
  }

 private:
  static constexpr double kSmallest = 256;
  static constexpr std::size_t kPoints = 73;  // 2^8 … 2^44, two an octave

  static double start_of(std::size_t i) {
    return std::bit_cast<double>(((std::bit_cast<std::uint64_t>(kSmallest) >> 51U) + i) << 51U);
  }

  struct Line {
    double seconds = 0;  // at the interval's begin
    double slope = 0;    // seconds a byte
  };
  std::array<std::array<Line, 2>, kPoints - 1> lines_{};  // of the best at either end
  TierTraffic a_byte_;
};

/// A table that is kept elsewhere, read like the table itself; of a group of one rank when default.
class CollectivePrice {
 public:
  CollectivePrice() = default;
  explicit CollectivePrice(const CollectiveTable& table) : table_(&table) {}
  Seconds operator()(double bytes) const {
    return table_ == nullptr ? Seconds(0) : (*table_)(bytes);
  }
  Seconds on_wire(std::size_t tier, double bytes) const {
    return table_ == nullptr ? Seconds(0) : table_->on_wire(tier, bytes);
  }

 private:
  const CollectiveTable* table_ = nullptr;
};

/// Tables made on first use and kept, one for each kind and group shape. Not for several threads
/// at once.
class CollectiveTables {
 public:
  explicit CollectiveTables(const ClusterSpec& cluster) : cluster_(&cluster) {}
  /// Valid as long as this object.
  CollectivePrice price(CollectiveKind kind, const GroupShape& group);

 private:
  struct Key {
    CollectiveKind kind;
    GroupShape group;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  const ClusterSpec* cluster_;
  std::unordered_map<Key, CollectiveTable, KeyHash> tables_;  // entries stay where they are
};

/// Prices of the groups that share model states.
struct DataParallelTables {
  struct Group {
    CollectivePrice all_gather;
    CollectivePrice reduce_scatter;
    CollectivePrice all_reduce;
    CollectivePrice all_to_all;  // where that and a sum replace a reduce-scatter
  };
  Group dense;                       // dp_shard x cp: shards of dense parameters
  Group dense_outer;                 // dp_replicate
  Group routed;                      // edp within one replica: shards of routed experts
  Group routed_outer;                // dp_replicate of the experts
  CollectivePrice reshard;           // all-gather of weights that forward left in smaller groups
  CollectivePrice tp_all_reduce;     // of gradients of parameters that tp replicates
  CollectivePrice tied_all_reduce;   // of the tied embedding, first and last stage
  CollectivePrice world_all_reduce;  // of the gradient norm
  /// Whether several ranks hold the same parameters, dense ones or, where the experts' groups fold
  /// over tp, routed ones: without that nothing is gathered or reduced.
  bool any = false;
};

/// The first and the last rank of a group, as a group of two. \pre group.ranks >= 2
GroupShape ends_of(const GroupShape& group);

/// Where the groups of data parallelism lie: DataParallelTables without the prices.
struct DataParallelShapes {
  GroupShape dense;
  GroupShape dense_outer;
  GroupShape routed;
  GroupShape reshard;
  GroupShape tp;
  GroupShape pp;
  GroupShape world;
};

/// Facts that decide which of them are needed.
struct DataParallelNeeds {
  bool experts = false;            // the model has routed experts; their prices are else those of
                                   // one rank
  bool fp32_accumulation = false;  // JobSpec::reduce_scatter_with_fp32_accumulation
};
/// \param tables  of the same cluster; must outlive the result
DataParallelTables data_parallel_tables(CollectiveTables& tables, const DataParallelShapes& shapes,
                                        const DataParallelNeeds& needs);
DataParallelTables data_parallel_tables(CollectiveTables& tables, const ClusterSpec& cluster,
                                        const Layout& layout, const DataParallelNeeds& needs);

}  // namespace shardwise
