#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/cost/memory/unit_elements.h"
#include "planner/lowering/data_parallel/buckets.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

UnitElements unit_sizes(const LoweringContext& context, const StageLayer& layer);

/// Numbers of the costs of moving one unit; -1 where nothing moves.
struct UnitCosts {
  struct Group {
    std::int32_t gather = -1;
    std::int32_t gather_again = -1;  // of parts kept after forward
    std::int32_t gather_outer = -1;
    std::int32_t reduce = -1;
    std::int32_t sum = -1;  // in fp32, of what `reduce` brought, where that is an all-to-all
    std::int32_t reduce_outer = -1;
  };
  Group dense;
  Group routed;
  std::int32_t cast = -1;  // of this rank's shard, before it is gathered
  std::int32_t copy_out = -1;
  std::int32_t reshard = -1;  // to the part that a rank keeps after forward
  std::int32_t copy_in = -1;
  std::int32_t accumulate = -1;  // of the reduced shard
};

/// Work of the data-parallel group on a unit under the plan's placements: sharded to whole,
/// partial to sharded or whole, over the inner axis and over the outer one.
struct UnitWork {
  UnitElements sizes;
  UnitCosts costs;
};

/// The work of units, made once for each kind of layer.
class UnitTable {
 public:
  UnitTable(const LoweringContext& context, StageBuilder& builder)
      : context_(context), builder_(builder), by_kind_(2 * context.memories.size()) {}
  const UnitWork& of(const StageLayer& layer);
  /// Work on one of root_buckets().
  UnitWork of(const Bucket& root);

  /// The reduction of so many elements: its cost over the inner and over the outer axis.
  UnitCosts::Group reduction(bool routed, std::int64_t elements, std::int64_t padded);
  /// The all-gather of so many updated elements.
  std::int32_t gather(bool routed, std::int64_t padded);

 private:
  UnitWork make(const UnitElements& sizes);
  std::int64_t ranks(bool routed) const {
    return routed ? context_.shards.routed : context_.shards.dense;
  }
  std::int32_t collective(CollectiveKind kind, GroupKind group, std::int64_t ranks, DType dtype,
                          double bytes);

  const LoweringContext& context_;
  StageBuilder& builder_;
  std::vector<std::optional<UnitWork>> by_kind_;
};

/// A unit that a layer works with: its own, or one of root_buckets().
struct LayerUnit {
  std::size_t number = 0;  // among those of the stage: the layer's slot, or one behind all
  std::int32_t part = -1;  // ProgramOp::part: of a root bucket its number in buckets_of()
  bool completes = true;   // backward is done with it once the layer is, and forward begins
                           // there
  const UnitWork* work = nullptr;
};

/// The units of a stage, by layer.
class StageUnits {
 public:
  StageUnits(const LoweringContext& context, std::int32_t stage, UnitTable& table);

  std::size_t size() const { return slots_.size() + roots_.size(); }
  /// In the order of registration, the layer's own first. \param slot  of a layer
  std::span<const LayerUnit> of(std::size_t slot) const { return slots_[slot]; }

 private:
  std::vector<UnitWork> roots_;
  std::vector<std::vector<LayerUnit>> slots_;
};

}  // namespace shardwise
