#include "executor/comm/communicator.h"

#include <algorithm>
#include <array>

#include "planner/spec/text/check.h"

namespace shardwise::exec {

Piece piece_of(std::int64_t all, std::int64_t shard, int rank) {
  const std::int64_t begin = std::min(all, shard * rank);
  const std::int64_t end = std::min(all, begin + shard);
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)};
}

Piece piece_in(const ConstTensorView& all, std::int64_t shard, int rank) {
  return piece_of(static_cast<std::int64_t>(all.count), shard, rank);
}

const ConstTensorView& sent_to(std::span<const Message> messages, int rank, std::size_t k) {
  for (const Message& each : messages) {
    if (each.peer == rank && each.sent.count > 0 && k-- == 0) return each.sent;
  }
  SHARDWISE_CHECK(false, "a tensor is received that is not sent");
}

// A gather moves bits and computes nothing, so bytes go as fp32.
void all_gather_bytes(Communicator& group, std::span<const std::byte> mine,
                      std::span<std::byte> all, DeviceStream& stream) {
  constexpr std::size_t kEach = sizeof(float);
  SHARDWISE_CHECK(mine.size() % kEach == 0, "whole words");
  const ConstTensorView words(mine.data(), mine.size() / kEach, DType::fp32);
  group.all_gather(words, {all.data(), all.size() / kEach, DType::fp32},
                   static_cast<std::int64_t>(words.count), stream);
}

void reduce_in_rank_order(int ranks, const std::function<ConstTensorView(int)>& of,
                          const TensorView& sum, bool add) {
  constexpr std::size_t kSumBlock = 4096;  // stays in the cache
  const bool narrow = of(0).dtype == DType::bf16;
  const bool begins = add && !narrow && sum.dtype == DType::fp32;
  for (std::size_t at = 0; at < sum.count; at += kSumBlock) {
    const std::size_t n = std::min(kSumBlock, sum.count - at);
    std::array<float, kSumBlock> block;  // NOLINT(*member-init*): its first n are copied into
    const TensorView total(std::span<float>(block.data(), n));
    const TensorView to = sum.part(at, n);
    cast(total, begins ? ConstTensorView(to) : of(0).part(at, n));
    for (int r = begins ? 0 : 1; r < ranks; ++r) {
      accumulate(total, of(r).part(at, n));
      if (narrow) round_to_bf16({block.data(), n});
    }
    if (add && !begins) {
      accumulate(to, total);
    } else {
      cast(to, total);
    }
  }
}

}  // namespace shardwise::exec
