#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/lowering/operands/tensor_slice.h"
#include "planner/lowering/stage/lowering_context.h"

namespace shardwise {

/// One tensor of the model and where it lies in its unit.
struct UnitTensor {
  std::int32_t layer = 0;           // index into ModelSpec::layers; of a copy the head
  std::int32_t parameter = 0;       // index into LayerSpec::parameters
  bool copy = false;                // of the token table that another stage has
  std::string name;                 // as in the checkpoint, indices filled in
  std::vector<std::int64_t> shape;  // of the whole tensor
  TensorCut cut = {};               // NOLINT(*-redundant-member-init): a rank's part by tp
  std::int64_t elements = 0;  // with the rows that an engine adds to the vocabulary: zeros, unused
  std::int64_t filled = 0;    // without them; of the whole tensor where it is cut
  std::int64_t begin = 0;     // of its first element in the unit
};

/// Parameters that are sharded, gathered and reduced together: a layer, or a bucket of tensors of
/// several layers. Flat: its tensors one after the other, with zeros between them where the engine
/// aligns them, cut into equal pieces for the ranks that share it. On CPUs the last piece may be
/// short. On GPUs, where collectives take equal pieces, and under engines that pad what is whole,
/// the unit ends where the last one does: with zeros behind its tensors, at least as many as the
/// engine pads by.
struct StateUnit {
  std::int32_t layer = -1;  // whose parameters all of it is; -1 for a bucket
  std::vector<UnitTensor> tensors;
  std::int64_t elements = 0;  // with those zeros
  // Elements a rank has room for where a state is sharded, as the engine pads it: over the inner
  // axis, and over both.
  std::int64_t shard = 0;
  std::int64_t outer_shard = 0;
};

/// Where a parameter is.
struct TensorPlace {
  std::size_t unit = 0;
  std::size_t tensor = 0;
};

/// Units the ranks of a stage share, in the order of the lowering's buckets: the last layer first.
struct StateUnits {
  std::vector<StateUnit> units;
  std::vector<std::vector<TensorPlace>> places;  // by layer of the model and parameter

  /// The unit that is all of a layer. \pre engines that work by unit
  std::size_t of_layer(std::int32_t layer) const;
  /// Place of the token table: that of the embedding, or the copy that the last stage has of it.
  TensorPlace table() const;
  const UnitTensor& tensor(const TensorPlace& place) const {
    return units[place.unit].tensors[place.tensor];
  }
  std::int64_t elements() const;
};
StateUnits state_units(const LoweringContext& context, std::int32_t stage);

}  // namespace shardwise
