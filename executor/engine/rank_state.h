#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/engine/arena.h"
#include "executor/engine/state_units.h"
#include "executor/optimizer/adamw.h"
#include "executor/optimizer/exact_sum.h"

namespace shardwise::exec {

/// Where a rank stands in the data-parallel axes.
struct DataParallelPlace {
  std::int64_t shard_ranks = 1;  // ranks that share a state placed shard_inner …
  int shard_rank = 0;            // … and which of them this is
  std::int64_t replicas = 1;     // dp_replicate
  int replica = 0;
  std::int64_t world = 1;
  int world_rank = 0;
};

/// A range of a unit's elements.
struct Held {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Parameters, gradients and optimizer state of a rank, as the plan's placements spread them.
class RankState {
 public:
  /// \param late_gradients  gradients exist from backward to the optimizer step only
  RankState(const StateUnits& units, const StatePlacement& placement,
            const DataParallelPlace& place, bool late_gradients);

  /// Adds the items of a program: residents first, the same in every program of a run.
  void add_items(MemoryItems& items);
  /// Operations that make and use a unit's gradients, where they are no residents.
  ItemId gradients_item(std::size_t unit) const { return gradients_[unit]; }
  bool late_gradients() const { return late_gradients_; }

  /// The parts of a unit's state that this rank keeps. The memory is that of `arena`'s program.
  struct View {
    std::span<float> weights;    // whole, or this rank's shard
    std::span<float> gradients;  // whole, or this rank's shard
    std::span<float> first;      // moments, of what the optimizer updates here
    std::span<float> second;
    std::span<float> updated;           // of the weights
    std::span<float> updated_gradient;  // the same elements
    Held held;                          // which elements those are
  };
  View view(const Arena& arena, std::size_t program, std::size_t unit) const;

  /// Fills this rank's weights, and no others: each element is drawn from its tensor's name and its
  /// number, so that all ways of sharding give the same model.
  void initialise(const Arena& arena, std::size_t program, std::uint64_t seed,
                  double output_deviation_scale) const;
  /// This rank's part of the gradient's norm: over all ranks every element once.
  ExactSquares squares(const Arena& arena, std::size_t program) const;
  void update(const Arena& arena, std::size_t program, const AdamStep& step,
              const OptimizerRules& rules) const;

  const StateUnits& units() const { return units_; }
  const StatePlacement& placement() const { return placement_; }
  const DataParallelPlace& place() const { return place_; }
  std::int64_t shard(std::size_t unit) const;

 private:
  std::int64_t kept(std::size_t unit, Placement placement) const;
  Held held(std::size_t unit, Placement placement) const;

  const StateUnits& units_;
  StatePlacement placement_;
  DataParallelPlace place_;
  bool late_gradients_;
  std::vector<ItemId> weights_;
  std::vector<ItemId> gradients_;
  std::vector<ItemId> first_;
  std::vector<ItemId> second_;
};

}  // namespace shardwise::exec
