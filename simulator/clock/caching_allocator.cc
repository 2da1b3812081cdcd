#include "simulator/clock/caching_allocator.h"

#include <algorithm>

#include "planner/spec/text/units.h"

namespace shardwise::sim {
namespace {

constexpr std::int64_t kBlockRounding = 512;
constexpr std::int64_t kSmallRequest = (1_MiB).value();
constexpr std::int64_t kSmallSegment = (2_MiB).value();
constexpr std::int64_t kLargeRequest = (10_MiB).value();
constexpr std::int64_t kLargeSegment = (20_MiB).value();
constexpr std::int64_t kSegmentRounding = (2_MiB).value();

std::int64_t segment_for(std::int64_t size) {
  if (size <= kSmallRequest) return kSmallSegment;
  if (size < kLargeRequest) return kLargeSegment;
  return round_up(size, kSegmentRounding);
}

}  // namespace

bool CachingAllocator::smaller(std::int32_t a, std::int32_t b) const {
  const std::int64_t x = blocks_[static_cast<std::size_t>(a)].size;
  const std::int64_t y = blocks_[static_cast<std::size_t>(b)].size;
  return x < y || (x == y && a < b);
}

void CachingAllocator::insert(std::int32_t block) {
  blocks_[static_cast<std::size_t>(block)].free = true;
  Pool& pool = pools_[blocks_[static_cast<std::size_t>(block)].pool];
  const auto at =
      std::lower_bound(pool.begin(), pool.end(), block,
                       [this](std::int32_t a, std::int32_t b) { return smaller(a, b); });
  pool.insert(at, block);
}

void CachingAllocator::remove(std::int32_t block) {
  blocks_[static_cast<std::size_t>(block)].free = false;
  Pool& pool = pools_[blocks_[static_cast<std::size_t>(block)].pool];
  pool.erase(std::lower_bound(pool.begin(), pool.end(), block,
                              [this](std::int32_t a, std::int32_t b) { return smaller(a, b); }));
}

std::int32_t CachingAllocator::make(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<std::int32_t>(blocks_.size() - 1);
  }
  const std::int32_t at = unused_.back();
  unused_.pop_back();
  blocks_[static_cast<std::size_t>(at)] = block;
  return at;
}

std::int32_t CachingAllocator::allocate(std::int64_t bytes, Stream stream) {
  const std::int64_t size = round_up(std::max<std::int64_t>(1, bytes), kBlockRounding);
  const bool small = size <= kSmallRequest;
  const auto pool =
      static_cast<std::uint8_t>(2 * static_cast<std::size_t>(stream) + (small ? 0 : 1));
  const Pool& free = pools_[pool];
  const auto found = std::lower_bound(
      free.begin(), free.end(), size, [this](std::int32_t block, std::int64_t wanted) {
        return blocks_[static_cast<std::size_t>(block)].size < wanted;
      });
  std::int32_t block = -1;
  if (found != free.end()) {
    block = *found;
    remove(block);
  } else {
    block = make({segment_for(size), -1, -1, pool, false});
    reserved_ += blocks_[static_cast<std::size_t>(block)].size;
  }
  const std::int64_t left = blocks_[static_cast<std::size_t>(block)].size - size;
  if (small ? left >= kBlockRounding : left > kSmallRequest) {
    const std::int32_t after = blocks_[static_cast<std::size_t>(block)].after;
    const std::int32_t rest = make({left, block, after, pool, false});
    if (after >= 0) blocks_[static_cast<std::size_t>(after)].before = rest;
    blocks_[static_cast<std::size_t>(block)].after = rest;
    blocks_[static_cast<std::size_t>(block)].size = size;
    insert(rest);
  }
  allocated_ += blocks_[static_cast<std::size_t>(block)].size;
  return block;
}

void CachingAllocator::join(std::int32_t block, std::int32_t after) {
  Block& grown = blocks_[static_cast<std::size_t>(block)];
  const Block& gone = blocks_[static_cast<std::size_t>(after)];
  grown.size += gone.size;
  grown.after = gone.after;
  if (gone.after >= 0) blocks_[static_cast<std::size_t>(gone.after)].before = block;
  unused_.push_back(after);
}

void CachingAllocator::release(std::int32_t block) {
  allocated_ -= blocks_[static_cast<std::size_t>(block)].size;
  const std::int32_t after = blocks_[static_cast<std::size_t>(block)].after;
  if (after >= 0 && blocks_[static_cast<std::size_t>(after)].free) {
    remove(after);
    join(block, after);
  }
  const std::int32_t before = blocks_[static_cast<std::size_t>(block)].before;
  if (before >= 0 && blocks_[static_cast<std::size_t>(before)].free) {
    remove(before);
    join(before, block);
    block = before;
  }
  insert(block);
}

}  // namespace shardwise::sim
