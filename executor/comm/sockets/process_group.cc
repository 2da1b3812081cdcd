#include "executor/comm/sockets/process_group.h"

#include <algorithm>
#include <cstdint>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kReduceBlock = 1 << 18;  // elements of a piece at a time, 1 MiB of fp32

std::span<const std::byte> tensor_bytes(const ConstTensorView& numbers) {
  return {numbers.data, numbers.bytes()};
}
std::span<std::byte> tensor_bytes(const TensorView& numbers) {
  return {numbers.data, numbers.bytes()};
}

/// Adds a tensor to what one rank sends or receives in the first round that has none for it.
template <class Bytes>
void add_to_rounds(std::vector<Transfers>& rounds, std::size_t ranks, std::size_t& next,
                   std::vector<Bytes> Transfers::*way, int peer, Bytes bytes) {
  if (rounds.size() == next) rounds.emplace_back(ranks);
  (rounds[next++].*way)[static_cast<std::size_t>(peer)] = bytes;
}

}  // namespace

void ProcessControlGroup::all_gather_bytes(std::span<const std::byte> mine,
                                           std::span<std::byte> all) {
  Transfers copies(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    const std::span<std::byte> place = all.subspan(at * mine.size(), mine.size());
    if (r != rank()) {
      copies.sent[at] = mine;
      copies.received[at] = place;
    } else {
      std::ranges::copy(mine, place.begin());
    }
  }
  peers_->transfer("all_gather_bytes", copies);
}

void ProcessControlGroup::broadcast(std::span<std::byte> bytes, int root) {
  Transfers copies(static_cast<std::size_t>(size()));
  if (rank() != root) copies.received[static_cast<std::size_t>(root)] = bytes;
  for (int r = 0; rank() == root && r < size(); ++r) {
    if (r != root) copies.sent[static_cast<std::size_t>(r)] = bytes;
  }
  peers_->transfer("broadcast", copies);
}

void ProcessControlGroup::send(std::span<const std::byte> message, int to) {
  Transfers one(static_cast<std::size_t>(size()));
  one.sent[static_cast<std::size_t>(to)] = message;
  peers_->transfer("send", one);
}

void ProcessControlGroup::receive(std::span<std::byte> message, int from) {
  Transfers one(static_cast<std::size_t>(size()));
  one.received[static_cast<std::size_t>(from)] = message;
  peers_->transfer("receive", one);
}

/// Every rank's piece to all others, this rank's own being in its place.
void ProcessCommunicator::gather_pieces(const TensorView& all, std::int64_t shard,
                                        const char* call) {
  Transfers pieces = transfers();
  const Piece own = piece_in(all, shard, rank());
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const auto at = static_cast<std::size_t>(r);
    const Piece piece = piece_in(all, shard, r);
    pieces.sent[at] = tensor_bytes(ConstTensorView(all.part(own.begin, own.count)));
    pieces.received[at] = tensor_bytes(all.part(piece.begin, piece.count));
  }
  peers_->transfer(call, pieces);
}

void ProcessCommunicator::all_gather(const ConstTensorView& mine, const TensorView& all,
                                     std::int64_t shard, DeviceStream& /*stream*/) {
  const Piece own = piece_in(all, shard, rank());
  cast(all.part(own.begin, own.count), mine.part(0, own.count));
  gather_pieces(all, shard, "all_gather");
}

void ProcessCommunicator::reduce_scatter(const ConstTensorView& all, const TensorView& mine,
                                         std::int64_t shard, bool add, DeviceStream& /*stream*/) {
  reduce_pieces(all, mine, shard, add, "reduce_scatter");
}

void ProcessCommunicator::all_reduce(const TensorView& values, DeviceStream& /*stream*/) {
  const std::int64_t shard = (static_cast<std::int64_t>(values.count) + size() - 1) / size();
  const Piece own = piece_in(values, shard, rank());
  reduce_pieces(values, values.part(own.begin, own.count), shard, false, "all_reduce");
  gather_pieces(values, shard, "all_reduce");
}

void ProcessCommunicator::reduce_pieces(const ConstTensorView& all, const TensorView& mine,
                                        std::int64_t shard, bool add, const char* call) {
  for (std::int64_t at = 0; at < shard; at += kReduceBlock) {
    reduce_block(all, mine, shard, at, add, call);
  }
}

/// Elements [at, at + kReduceBlock) of every piece go to its rank, which adds the received in
/// order.
void ProcessCommunicator::reduce_block(const ConstTensorView& all, const TensorView& mine,
                                       std::int64_t shard, std::int64_t at, bool add,
                                       const char* call) {
  const auto in_block = [&](int r) {
    const Piece piece = piece_in(all, shard, r);
    const auto left = static_cast<std::int64_t>(piece.count) - at;
    const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, kReduceBlock));
    return all.part(count > 0 ? piece.begin + static_cast<std::size_t>(at) : 0, count);
  };
  const ConstTensorView own = in_block(rank());
  received_.resize(own.bytes() * static_cast<std::size_t>(size()));
  Transfers blocks = transfers();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const auto place = static_cast<std::size_t>(r);
    blocks.sent[place] = tensor_bytes(in_block(r));
    blocks.received[place] = std::span(received_).subspan(place * own.bytes(), own.bytes());
  }
  peers_->transfer(call, blocks);
  if (own.count == 0) return;
  const auto from = [&](int r) {
    if (r == rank()) return own;
    const std::byte* const place = received_.data() + static_cast<std::size_t>(r) * own.bytes();
    return ConstTensorView(place, own.count, own.dtype);
  };
  reduce_in_rank_order(size(), from, mine.part(static_cast<std::size_t>(at), own.count), add);
}

void ProcessCommunicator::all_to_all(const ConstTensorView& all, const TensorView& received,
                                     std::int64_t shard, DeviceStream& /*stream*/) {
  Transfers pieces = transfers();
  const Piece own = piece_in(all, shard, rank());
  for (int r = 0; r < size(); ++r) {
    const Piece piece = piece_in(all, shard, r);
    const TensorView to = received.part(static_cast<std::size_t>(shard * r), own.count);
    const auto place = static_cast<std::size_t>(r);
    if (r == rank()) {
      cast(to, all.part(own.begin, own.count));
    } else {
      pieces.sent[place] = tensor_bytes(all.part(piece.begin, piece.count));
      pieces.received[place] = tensor_bytes(to);
    }
  }
  peers_->transfer("all_to_all", pieces);
}

void ProcessCommunicator::send_receive(std::span<const Message> messages,
                                       DeviceStream& /*stream*/) {
  // A round has one tensor each way with each rank; the k-th of a pair is in the k-th of both.
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<Transfers> rounds;
  std::vector<std::size_t> sent(ranks);
  std::vector<std::size_t> received(ranks);
  for (const Message& each : messages) {
    const auto peer = static_cast<std::size_t>(each.peer);
    if (each.sent.count > 0) {
      add_to_rounds(rounds, ranks, sent[peer], &Transfers::sent, each.peer,
                    tensor_bytes(each.sent));
    }
    if (each.received.count > 0) {
      add_to_rounds(rounds, ranks, received[peer], &Transfers::received, each.peer,
                    tensor_bytes(each.received));
    }
  }
  for (const Transfers& round : rounds) peers_->transfer("send_receive", round);
}

}  // namespace shardwise::exec
