#include "executor/comm/process_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/comm/rank_list.h"
#include "planner/spec/check.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kBlock = 1 << 18;  // elements of a piece at a time, 1 MiB of fp32

Piece piece_in(const ConstNumbers& all, std::int64_t shard, int rank) {
  return piece_of(static_cast<std::int64_t>(all.count), shard, rank);
}

std::span<const std::byte> bytes_of(const ConstNumbers& numbers) {
  return {numbers.data, numbers.bytes()};
}
std::span<std::byte> bytes_of(const Numbers& numbers) { return {numbers.data, numbers.bytes()}; }

}  // namespace

ProcessGroup::ProcessGroup(std::vector<std::int64_t> ranks, const Patience& patience)
    : ranks_(std::move(ranks)), patience_(patience) {
  const auto self = std::ranges::find(ranks_, std::int64_t{patience_.rank});
  SHARDWISE_CHECK(self != ranks_.end(), "a rank joins groups that it is part of");
  rank_ = static_cast<int>(self - ranks_.begin());
}

void ProcessGroup::give_up(const char* what, const std::vector<std::size_t>& missing) const {
  std::vector<std::int64_t> who;
  for (const std::size_t each : missing) who.push_back(ranks_[each]);
  patience_.abort->raise_hung(fmt::format("rank {} waited {} s in {} for rank {}", patience_.rank,
                                          patience_.seconds, what, rank_list(who)));
  throw Aborted("another rank did not arrive");
}

/// Pieces from where they are to everybody, this rank's own being in its place.
void ProcessGroup::gather_pieces(const Numbers& all, std::int64_t shard, const char* what) {
  Trade pieces(ranks_.size());
  const Piece own = piece_in(all, shard, rank_);
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    const auto at = static_cast<std::size_t>(r);
    const Piece piece = piece_in(all, shard, r);
    pieces.sent[at] = bytes_of(ConstNumbers(all.part(own.begin, own.count)));
    pieces.received[at] = bytes_of(all.part(piece.begin, piece.count));
  }
  trade(what, pieces);
}

void ProcessGroup::all_gather(const ConstNumbers& mine, const Numbers& all, std::int64_t shard) {
  const Piece own = piece_in(all, shard, rank_);
  copy_numbers(all.part(own.begin, own.count), mine.part(0, own.count));
  gather_pieces(all, shard, "all_gather");
}

void ProcessGroup::reduce_scatter(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                                  bool add) {
  sum_pieces(all, mine, shard, add, "reduce_scatter");
}

void ProcessGroup::all_reduce(const Numbers& values) {
  const std::int64_t shard = (static_cast<std::int64_t>(values.count) + size() - 1) / size();
  const Piece own = piece_in(values, shard, rank_);
  sum_pieces(values, values.part(own.begin, own.count), shard, false, "all_reduce");
  gather_pieces(values, shard, "all_reduce");
}

void ProcessGroup::sum_pieces(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                              bool add, const char* what) {
  for (std::int64_t at = 0; at < shard; at += kBlock) fold_block(all, mine, shard, at, add, what);
}

/// Elements [at, at + kBlock) of every piece go to its rank, which adds what it gets in order.
void ProcessGroup::fold_block(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                              std::int64_t at, bool add, const char* what) {
  const auto in_block = [&](int r) {
    const Piece piece = piece_in(all, shard, r);
    const auto left = static_cast<std::int64_t>(piece.count) - at;
    const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, kBlock));
    return all.part(count > 0 ? piece.begin + static_cast<std::size_t>(at) : 0, count);
  };
  const ConstNumbers own = in_block(rank_);
  received_.resize(own.bytes() * ranks_.size());
  Trade blocks(ranks_.size());
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    const auto place = static_cast<std::size_t>(r);
    blocks.sent[place] = bytes_of(in_block(r));
    blocks.received[place] = std::span(received_).subspan(place * own.bytes(), own.bytes());
  }
  trade(what, blocks);
  if (own.count == 0) return;
  const auto from = [&](int r) {
    if (r == rank_) return own;
    const std::byte* const place = received_.data() + static_cast<std::size_t>(r) * own.bytes();
    return ConstNumbers(place, own.count, own.dtype);
  };
  fold(size(), from, mine.part(static_cast<std::size_t>(at), own.count), add);
}

void ProcessGroup::broadcast(std::span<std::byte> values, int root) {
  Trade copies(ranks_.size());
  if (rank_ != root) copies.received[static_cast<std::size_t>(root)] = values;
  for (std::size_t r = 0; rank_ == root && r < ranks_.size(); ++r) {
    if (r != static_cast<std::size_t>(root)) copies.sent[r] = values;
  }
  trade("broadcast", copies);
}

void ProcessGroup::all_to_all(const ConstNumbers& all, const Numbers& received,
                              std::int64_t shard) {
  Trade pieces(ranks_.size());
  const Piece own = piece_in(all, shard, rank_);
  for (int r = 0; r < size(); ++r) {
    const Piece piece = piece_in(all, shard, r);
    const Numbers to = received.part(static_cast<std::size_t>(shard * r), own.count);
    const auto place = static_cast<std::size_t>(r);
    if (r == rank_) {
      copy_numbers(to, all.part(own.begin, own.count));
    } else {
      pieces.sent[place] = bytes_of(all.part(piece.begin, piece.count));
      pieces.received[place] = bytes_of(to);
    }
  }
  trade("all_to_all", pieces);
}

void ProcessGroup::exchange(std::span<const std::byte> mine, std::span<std::byte> all) {
  Trade copies(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const std::span<std::byte> place = all.subspan(r * mine.size(), mine.size());
    if (r != static_cast<std::size_t>(rank_)) {
      copies.sent[r] = mine;
      copies.received[r] = place;
    } else {
      std::ranges::copy(mine, place.begin());
    }
  }
  trade("exchange", copies);
}

void ProcessGroup::send(std::span<const std::byte> message, int to) {
  Trade one(ranks_.size());
  one.sent[static_cast<std::size_t>(to)] = message;
  trade("send", one);
}

void ProcessGroup::receive(std::span<std::byte> message, int from) {
  Trade one(ranks_.size());
  one.received[static_cast<std::size_t>(from)] = message;
  trade("receive", one);
}

}  // namespace shardwise::exec
