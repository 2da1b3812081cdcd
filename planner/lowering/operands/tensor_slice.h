#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// How tensor parallelism cuts a tensor: along one dimension, and where several matrices are stored
/// as one, each of them. A rank has the part of its number of every piece, one after the other:
/// whole heads of queries, of keys and of values, as widths are multiples of the ranks. Of a table,
/// whose rows are padded to equal parts, the last ranks may have fewer than that, zeros behind
/// them, or none.
struct TensorCut {
  std::int64_t ways = 1;
  std::int64_t outer = 1;            // rows of the whole tensor before the dimension
  std::int64_t inner = 1;            // elements of one step along it
  std::int64_t extent = 1;           // steps, of all pieces
  std::vector<std::int64_t> pieces;  // steps of each, padded

  bool cut() const { return ways > 1; }
};

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
/// Visits `count` elements of a rank's part from number `first` on, in their order.
/// \pre cut()
void for_slice_runs(const TensorCut& cut, int rank, std::int64_t first, std::int64_t count,
                    const std::function<void(const SliceRun&)>& visit);

}  // namespace shardwise
