#include "executor/comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{1} << 26;  // a checkpoint's list of files is less
constexpr std::size_t kTextBlock = std::size_t{1} << 16;

}  // namespace

std::vector<std::string> exchange_texts(Communicator& group, const std::string& own) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(ranks);
  group.exchange(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
  const auto longest = std::ranges::max_element(lengths);
  if (*longest > kMostText) {
    throw IoError(fmt::format("rank {} of a group has a text of {} bytes, at most {} are sent",
                              longest - lengths.begin(), *longest, kMostText));
  }
  // In blocks: memory for a long text is taken as its bytes come, not because somebody says so.
  std::vector<std::string> said(ranks);
  std::vector<char> block;
  std::vector<char> all;
  for (std::size_t at = 0; at < *longest; at += block.size()) {
    block.assign(std::min<std::size_t>(*longest - at, kTextBlock), '\0');
    all.resize(block.size() * ranks);
    if (at < own.size()) own.copy(block.data(), block.size(), at);
    group.exchange(std::as_bytes(std::span<const char>(block)),
                   std::as_writable_bytes(std::span<char>(all)));
    for (std::size_t r = 0; r < ranks; ++r) {
      if (at >= lengths[r]) continue;
      said[r].append(&all[block.size() * r], std::min<std::size_t>(block.size(), lengths[r] - at));
    }
  }
  return said;
}

Piece piece_of(std::int64_t all, std::int64_t shard, int rank) {
  const std::int64_t begin = std::min(all, shard * rank);
  const std::int64_t end = std::min(all, begin + shard);
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)};
}

void fold(int ranks, const std::function<ConstNumbers(int)>& of, const Numbers& sum, bool add) {
  constexpr std::size_t kBlock = 4096;  // stays in the cache
  const bool narrow = of(0).dtype == DType::bf16;
  const bool begins = add && !narrow && sum.dtype == DType::fp32;
  for (std::size_t at = 0; at < sum.count; at += kBlock) {
    const std::size_t n = std::min(kBlock, sum.count - at);
    std::array<float, kBlock> block;  // NOLINT(*member-init*): its first n are copied into
    const Numbers total(std::span<float>(block.data(), n));
    const Numbers to = sum.part(at, n);
    copy_numbers(total, begins ? ConstNumbers(to) : of(0).part(at, n));
    for (int r = begins ? 0 : 1; r < ranks; ++r) {
      add_to(total, of(r).part(at, n));
      if (narrow) round_to_bf16({block.data(), n});
    }
    if (add && !begins) {
      add_to(to, total);
    } else {
      copy_numbers(to, total);
    }
  }
}

}  // namespace shardwise::exec
