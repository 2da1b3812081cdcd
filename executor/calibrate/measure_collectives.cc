#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/calibrate/measure.h"
#include "planner/spec/names.h"

namespace shardwise::exec {
namespace {

constexpr int kFirstGroup = 110;  // numbers of the groups that are timed
constexpr CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                     CollectiveKind::all_reduce, CollectiveKind::all_to_all};
constexpr std::int64_t kElements[] = {4'096, 65'536, 262'144, 1'048'576, 4'194'304, 8'388'608};

/// 2, 4, 8 … and all ranks, as far as all ranks are in groups of so many.
std::vector<int> group_sizes(int world) {
  std::vector<int> sizes;
  for (int size = 2; size < world; size *= 2) {
    if (world % size == 0) sizes.push_back(size);
  }
  if (world > 1) sizes.push_back(world);
  return sizes;
}

void call(Communicator& group, CollectiveKind kind, std::span<float> all, std::span<float> other) {
  const std::int64_t shard = std::ssize(all) / group.size();
  const auto piece = static_cast<std::size_t>(shard);
  switch (kind) {
    case CollectiveKind::all_gather:
      group.all_gather(other.first(piece), all, shard);
      return;
    case CollectiveKind::reduce_scatter:
      group.reduce_scatter(all, other.first(piece), shard, false);
      return;
    case CollectiveKind::all_reduce:
      group.all_reduce(all);
      return;
    default:
      group.all_to_all(all, other, shard);
      return;
  }
}

}  // namespace

void measure_collectives(World& world, Stopwatch& watch, const Told& told, Measurements& to) {
  const std::vector<int> sizes = group_sizes(world.size());
  std::vector<float> all(static_cast<std::size_t>(std::ranges::max(kElements)));
  std::vector<float> other(all.size());
  double done = 0;
  for (const int size : sizes) {
    std::vector<std::int64_t> ranks;
    for (int i = 0; i < size; ++i) ranks.push_back(world.rank() / size * size + i);
    const std::unique_ptr<Communicator> group = world.group(ranks, kFirstGroup + size);
    for (const CollectiveKind kind : kKinds) {
      told(fmt::format("{} among {}", name_of(kind), size), done);
      done += 1 / static_cast<double>(sizes.size() * std::size(kKinds));
      for (const std::int64_t elements : kElements) {
        const std::int64_t cut = elements / size * size;
        const auto count = static_cast<std::size_t>(cut);
        // Zeros: a sum that is summed again stays finite.
        const double seconds = watch.seconds([&] {
          call(*group, kind, std::span(all).first(count), std::span(other).first(count));
        });
        to.collectives.push_back({kind, size, Bytes(4 * cut), Seconds(seconds)});
      }
    }
  }
}

}  // namespace shardwise::exec
