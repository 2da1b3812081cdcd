#pragma once

#include <cstdint>

#include "planner/lowering/stage/lowering_context.h"
#include "planner/spec/machine/dtype.h"

namespace shardwise {

/// Types a plan's numbers are stored in: fp32 or bf16. docs/executor.md, "Where numbers are
/// rounded".
struct StateTypes {
  /// Bytes that a rank keeps of a main weight beside its weight; 0 where it keeps none.
  std::int64_t main_bytes() const { return main_weights ? (remainders ? 2 : 4) : 0; }

  DType compute = DType::fp32;  // of the weights that kernels read
  DType weights = DType::fp32;  // of those that a rank keeps by the placement of parameters
  bool main_weights = false;    // fp32 ones are kept beside them, by that of the optimizer's state
  bool remainders = false;      // of them the 16 bits that bf16 weights lack are kept, no more
  bool weights_are_main = false;  // what is kept is what the optimizer updates: FSDP's shards
  DType made = DType::fp32;       // of gradients as kernels make them
  DType gradients = DType::fp32;  // of those that a rank keeps
  DType reduced = DType::fp32;    // of gradients on their way between ranks
  bool casts_gradients = false;   // to fp32, for the optimizer's operation
};
StateTypes state_types(const LoweringContext& context);

}  // namespace shardwise
