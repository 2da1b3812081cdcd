#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/calibrate/measure.h"
#include "planner/spec/plan/names.h"

namespace shardwise::exec {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                     CollectiveKind::all_reduce, CollectiveKind::all_to_all};
constexpr std::int64_t kElements[] = {4'096, 65'536, 262'144, 1'048'576, 4'194'304, 8'388'608};

constexpr std::int64_t kNarrowElements[] = {262'144, 4'194'304};  // of bf16

// What a rank keeps is met once a step and comes from memory: each call takes the next part of a
// buffer that is larger than the caches. Units gathered and gradients on their way have a few
// places that are used again and again: those stay in the cache that all ranks share, not in that
// of a processor.
constexpr std::int64_t kKept = std::int64_t{12} << 20;    // floats
constexpr std::int64_t kPassing = std::int64_t{3} << 19;  // floats

/// 2, 4, 8 … and all ranks, as far as all ranks are in groups of so many.
std::vector<int> group_sizes(int world) {
  std::vector<int> sizes;
  for (int size = 2; size < world; size *= 2) {
    if (world % size == 0) sizes.push_back(size);
  }
  if (world > 1) sizes.push_back(world);
  return sizes;
}

/// Parts of a buffer, one after the other.
class BufferParts {
 public:
  /// \param extent  that parts are taken from, or twice a part where that is more
  explicit BufferParts(std::int64_t extent)
      : extent_(static_cast<std::size_t>(extent)),
        buffer_(std::max(extent_, 2 * static_cast<std::size_t>(std::ranges::max(kElements)))) {}

  std::span<float> next(std::size_t count) {
    if (at_ + count > std::max(extent_, 2 * count)) at_ = 0;
    const std::span<float> part = std::span(buffer_).subspan(at_, count);
    at_ += count;
    return part;
  }

 private:
  std::size_t extent_;
  std::vector<float> buffer_;  // zeros: a sum that is summed again stays finite
  std::size_t at_ = 0;
};

struct Buffers {
  BufferParts kept = BufferParts(kKept);
  BufferParts passing = BufferParts(kPassing);
  BufferParts received = BufferParts(kPassing);
};

/// So many elements of `dtype`. \pre an even number of bf16
TensorView next(BufferParts& parts, DType dtype, std::size_t count) {
  const std::size_t floats = count * static_cast<std::size_t>(bytes_of(dtype)) / sizeof(float);
  return {reinterpret_cast<std::byte*>(parts.next(floats).data()), count, dtype};
}

/// \param count  elements
void call(Communicator& group, CollectiveKind kind, DType dtype, std::size_t count,
          Buffers& buffers, DeviceStream& stream) {
  const std::size_t piece = count / static_cast<std::size_t>(group.size());
  const auto shard = static_cast<std::int64_t>(piece);
  switch (kind) {
    case CollectiveKind::all_gather:
      group.all_gather(next(buffers.kept, dtype, piece), next(buffers.passing, dtype, count), shard,
                       stream);
      return;
    case CollectiveKind::reduce_scatter:
      group.reduce_scatter(next(buffers.passing, dtype, count), next(buffers.kept, dtype, piece),
                           shard, false, stream);
      return;
    case CollectiveKind::all_reduce:
      group.all_reduce(next(buffers.kept, dtype, count), stream);
      return;
    default:
      group.all_to_all(next(buffers.passing, dtype, count), next(buffers.received, dtype, count),
                       shard, stream);
      return;
  }
}

}  // namespace

void measure_collectives(World& world, Stopwatch& watch, const Told& told, Measurements& to) {
  const std::vector<int> sizes = group_sizes(world.size());
  Buffers buffers;
  DeviceStream stream;
  double done = 0;
  for (const int size : sizes) {
    std::vector<std::int64_t> ranks;
    for (int i = 0; i < size; ++i) ranks.push_back(world.rank() / size * size + i);
    const std::unique_ptr<Communicator> group = world.communicator(ranks, Stream::compute);
    for (const CollectiveKind kind : kKinds) {
      told(fmt::format("{} among {}", name_of(kind), size), done);
      done += 1 / static_cast<double>(sizes.size() * std::size(kKinds));
      const auto time = [&](DType dtype, std::int64_t elements) {
        const std::int64_t whole = 2 * std::int64_t{size};  // of bf16 an even number a rank
        const std::int64_t cut = elements / whole * whole;
        const auto count = static_cast<std::size_t>(cut);
        const double seconds =
            watch.seconds([&] { call(*group, kind, dtype, count, buffers, stream); });
        to.collectives.push_back(
            {kind, size, Bytes(bytes_of(dtype) * cut), Seconds(seconds), dtype});
      };
      for (const std::int64_t elements : kElements) time(DType::fp32, elements);
      for (const std::int64_t elements : kNarrowElements) time(DType::bf16, elements);
    }
  }
}

}  // namespace shardwise::exec
