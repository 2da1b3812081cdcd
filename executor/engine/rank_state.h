#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/comm/numbers.h"
#include "executor/engine/arena.h"
#include "executor/engine/state_types.h"
#include "executor/engine/state_units.h"
#include "executor/kernels/workers.h"
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

/// Where weights come from: the elements of a tensor from number `first` on. Called by all ranks of
/// a process at once.
using WeightSource =
    std::function<void(const UnitTensor& tensor, std::int64_t first, std::span<float> values)>;

/// Each element drawn from its tensor's name and its number.
WeightSource drawn_weights(std::uint64_t seed, double output_deviation_scale);

/// Parameters, gradients and optimizer state of a rank, as the plan's placements spread them.
class RankState {
 public:
  /// \param late_gradients  gradients exist from backward to the optimizer step only
  RankState(const StateUnits& units, const StatePlacement& placement, const StateTypes& types,
            const DataParallelPlace& place, bool late_gradients);

  /// Adds the items of a program: residents first, the same in every program of a run.
  void add_items(MemoryItems& items);
  /// Operations that make and use a unit's gradients, where they are no residents.
  ItemId gradients_item(std::size_t unit) const { return gradients_[unit]; }
  bool late_gradients() const { return late_gradients_; }

  /// The parts of a unit's state that this rank keeps. The memory is that of `arena`'s program.
  struct View {
    Numbers weights;         // whole, or this rank's shard
    Numbers gradients;       // whole, or this rank's shard
    std::span<float> first;  // moments, of what the optimizer updates here
    std::span<float> second;
    std::span<float> main;     // the weights that it updates
    Numbers updated;           // the same elements of `weights`
    Numbers updated_gradient;  // and of `gradients`
    Numbers reduced;           // what the reduction over the inner axis leaves here
    Held held;                 // which elements those are
  };
  View view(const Arena& arena, std::size_t program, std::size_t unit) const;

  /// Fills this rank's weights, and no others, rows that an engine adds with zeros: all ways of
  /// sharding give the same model.
  void fill(const Arena& arena, std::size_t program, const WeightSource& source) const;
  /// This rank's part of the gradient's norm: over all ranks every element once.
  ExactSquares squares(const Arena& arena, std::size_t program, Workers& workers) const;
  /// \param casts  place of so many fp32 gradients as updated_elements() says; empty when they are
  /// read as they are
  void update(const Arena& arena, std::size_t program, const AdamStep& step,
              const OptimizerRules& rules, std::span<float> casts, Workers& workers) const;
  /// The elements of a unit that this rank stands for: of those that it updates, over all ranks
  /// each once.
  Held stands_for(std::size_t unit) const;
  /// Those whose weights it keeps.
  Held keeps(std::size_t unit) const { return held(unit, placement_.parameters); }
  /// Elements that this rank updates, padding included.
  std::int64_t updated_elements() const;

  const StateUnits& units() const { return units_; }
  const StatePlacement& placement() const { return placement_; }
  const StateTypes& types() const { return types_; }
  const DataParallelPlace& place() const { return place_; }
  /// Elements of a unit that a rank has room for, padding included.
  std::int64_t shard(std::size_t unit, Placement placement) const;

 private:
  Held held(std::size_t unit, Placement placement) const;
  void fill_part(const Numbers& weights, std::size_t unit, const Held& held,
                 const WeightSource& source) const;

  const StateUnits& units_;
  StatePlacement placement_;
  StateTypes types_;
  DataParallelPlace place_;
  bool late_gradients_;
  std::vector<ItemId> weights_;
  std::vector<ItemId> main_;  // where weights are kept beside them
  std::vector<ItemId> gradients_;
  std::vector<ItemId> first_;
  std::vector<ItemId> second_;
};

}  // namespace shardwise::exec
