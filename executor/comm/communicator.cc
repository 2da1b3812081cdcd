#include "executor/comm/communicator.h"

#include <algorithm>

namespace shardwise::exec {

Piece piece_of(std::int64_t all, std::int64_t shard, int rank) {
  const std::int64_t begin = std::min(all, shard * rank);
  const std::int64_t end = std::min(all, begin + shard);
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)};
}

void add_to(std::span<float> sum, std::span<const float> each) {
  float* const to = sum.data();
  const float* const from = each.data();
  const std::size_t n = sum.size();
  for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
}

}  // namespace shardwise::exec
