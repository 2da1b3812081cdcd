#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// PyTorch's caching allocator as a count of bytes: which requests open a new segment, and which
/// are served from blocks that were freed before.
///
/// Requests are rounded to 512 B. Up to 1 MiB they are cut from segments of 2 MiB, below 10 MiB
/// from segments of 20 MiB, larger ones have segments of their own size rounded to 2 MiB. The
/// smallest free block of the same stream and pool that is large enough is taken; it is split when
/// at least 512 B (small pool), or more than 1 MiB (large pool), are left. Freed blocks join their
/// free neighbours. Segments are never given back. Source: pytorch/pytorch,
/// c10/core/AllocatorConfig.h (constants), c10/cuda/ CUDACachingAllocator.cpp: get_allocation_size,
/// get_pool, should_split, free_block.
class CachingAllocator {
 public:
  /// \returns a handle for `release`. \pre bytes >= 0
  std::int32_t allocate(std::int64_t bytes, Stream stream);
  void release(std::int32_t block);

  std::int64_t allocated() const { return allocated_; }  // rounded
  std::int64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::int64_t size = 0;
    std::int32_t before = -1;  // neighbours in its segment
    std::int32_t after = -1;
    std::uint8_t pool = 0;  // of pools_
    bool free = false;
  };
  /// Free blocks of one stream, small or large; ascending by size, then by age.
  using Pool = std::vector<std::int32_t>;

  bool smaller(std::int32_t a, std::int32_t b) const;
  void insert(std::int32_t block);
  void remove(std::int32_t block);
  std::int32_t make(const Block& block);
  void join(std::int32_t block, std::int32_t after);

  std::vector<Block> blocks_;
  std::vector<std::int32_t> unused_;  // of blocks_
  std::array<Pool, 2 * kStreams> pools_;
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
};

}  // namespace shardwise::sim
