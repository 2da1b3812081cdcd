#include "planner/search/space/shape_cache.h"

namespace shardwise {

std::size_t ShapeCache::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
  };
  mix(key.world);
  mix(key.runs.inner);
  mix(key.runs.pp);
  for (int i = 0; i < key.runs.count; ++i) {
    const RankRun& run = key.runs.runs[static_cast<std::size_t>(i)];
    mix(run.stride);
    mix(run.size);
  }
  return hash;
}

GroupShape ShapeCache::shape(const Layout& layout, GroupKind kind) {
  const Key key = {layout.world(), group_runs(layout, kind)};
  const auto [at, made] = known_.try_emplace(key);
  if (made) at->second = shape_of(cluster_, key.world, key.runs);
  return at->second;
}

}  // namespace shardwise
