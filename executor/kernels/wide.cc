#include "executor/kernels/wide.h"

namespace shardwise::exec {

SHARDWISE_VECTOR_CLONES void widen_run(const Bf16* from, std::int64_t count, float* to) {
  widen(from, count, to);
}

SHARDWISE_VECTOR_CLONES void narrow_run(const float* from, std::int64_t count, Bf16* to) {
  narrow(from, count, to);
}

}  // namespace shardwise::exec
