#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Cut that tensor parallelism makes of a tensor: along one dimension, and where several matrices
/// are stored as one, each of them. A rank has the part of its number of every piece, one after the
/// other: whole heads of queries, of keys and of values, as widths are multiples of the ranks. Of a
/// table, whose rows are padded to equal parts, the last ranks may have fewer than that, zeros
/// behind them, or none.
struct TensorCut {
  std::int64_t ways = 1;
  std::int64_t copies = 1;  // neighbouring ranks that have the same part
  std::int64_t dimension = 0;
  std::int64_t outer = 1;            // rows of the whole tensor before the dimension
  std::int64_t inner = 1;            // elements of one step along it
  std::int64_t extent = 1;           // steps, of all pieces
  std::vector<std::int64_t> pieces;  // steps of each, padded

  bool cut() const { return ways > 1; }
  /// The part that a rank of tensor parallelism has.
  int part_of(int tp_rank) const { return static_cast<int>(tp_rank / copies); }
  /// Whether it is the first of those that have its part, or of all where it is not cut.
  bool leads(int tp_rank) const { return cut() ? tp_rank % copies == 0 : tp_rank == 0; }
  friend bool operator==(const TensorCut&, const TensorCut&) = default;
};

/// The cut of a tensor of a shape along one of its dimensions. \pre it has that dimension
TensorCut cut_along(const std::vector<std::int64_t>& shape, std::size_t dimension,
                    std::int64_t ways, std::vector<std::int64_t> pieces);

/// The cut of a layer's parameter. One product for queries, keys and values comes before all
/// others that are cut by columns.
TensorCut tensor_cut(const LayerSpec& layer, std::int32_t parameter, const EngineProfile& engine,
                     const Layout& layout);

/// Elements of a rank's part that lie one behind the other in the whole tensor too.
struct SliceRun {
  std::int64_t part = 0;   // the first of them in the part
  std::int64_t whole = 0;  // and in the tensor; -1 for zeros that pad the part
  std::int64_t count = 0;
};
/// Visits `count` elements of a part from number `first` on, in their order. \pre cut()
void for_slice_runs(const TensorCut& cut, int part_number, std::int64_t first, std::int64_t count,
                    const std::function<void(const SliceRun&)>& visit);

/// Elements of a part that are the tensor's. Zeros that pad a part are behind them.
/// \pre a tensor with padding is one piece, cut along its first dimension
std::int64_t filled_part(const TensorCut& cut, std::int64_t part_number);

/// Elements of a whole tensor that lie one behind the other in one rank's part too.
struct PartRun {
  std::int64_t whole = 0;  // the first of them in the tensor
  std::int64_t rank = 0;
  std::int64_t part = 0;  // and in the part of that rank
  std::int64_t count = 0;
};
/// Visits `count` elements of a whole tensor from number `first` on, in their order. Those of one
/// rank follow one another in its part as they do in the tensor. \pre cut()
void for_part_runs(const TensorCut& cut, std::int64_t first, std::int64_t count,
                   const std::function<void(const PartRun&)>& visit);

}  // namespace shardwise
