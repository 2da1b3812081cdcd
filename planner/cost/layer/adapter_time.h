#pragma once

#include <cstdint>

#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/layer_pricer.h"

namespace shardwise {

/// Rows that a product multiplies of each of so many groups.
struct ProductRows {
  double each = 0;
  std::int64_t groups = 1;
};

/// Adds what an adapter beside the frozen matrix of `op` takes, and what it takes to make a matrix
/// in 4 bits wide before each product. docs/layer_time.md, Layers.
void price_adapter(const LayerPricer& pricer, const Layout& layout, const OperationSpec& op,
                   const AdaptedLinear& linear, const ProductRows& rows, PassTime& forward,
                   PassTime& backward);

}  // namespace shardwise
