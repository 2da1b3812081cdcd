#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/spec/plan/mesh.h"
#include "planner/spec/text/units.h"

namespace shardwise::test {

/// The shape of a group with `spans` ranks in each domain of the tiers, when all GPUs of the inner
/// domains are busy with such groups. even_group(cluster, {8, 16}) is a group of 16 on 2 nodes.
/// \pre spans grow, each at most the tier's domain_size
inline GroupShape even_group(const ClusterSpec& cluster, const std::vector<std::int32_t>& spans) {
  GroupShape shape;
  shape.ranks = spans.back();
  if (shape.ranks == 1) return shape;
  std::size_t i = 0;
  std::int32_t inner = 1;
  for (const std::int32_t span : spans) {
    shape.span[i] = shape.least[i] = span;
    shape.domains[i] = static_cast<std::int32_t>(ceil_div(shape.ranks, span));
    // GPUs that leave an inner domain by the same links.
    const std::int64_t size = i == 0 ? 1 : cluster.tiers[i - 1].domain_size;
    const std::int64_t block = std::max(size, std::int64_t{cluster.tiers[i].gpus_per_link});
    const std::int64_t together =
        i > 0 && block == size ? inner : std::min<std::int64_t>(span, block);
    shape.concurrent[i] = static_cast<std::int32_t>(std::max<std::int64_t>(1, block / together));
    inner = span;
    ++i;
    if (span == shape.ranks) break;
  }
  shape.tiers = static_cast<std::int32_t>(i);
  return shape;
}

}  // namespace shardwise::test
