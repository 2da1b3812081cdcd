#include "executor/comm/thread_group.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

/// The pieces of all ranks in their places, from where `at` says.
void gather_pieces(const TensorView& all, std::int64_t shard, int ranks,
                   const std::function<const std::byte*(int, const Piece&)>& at) {
  for (int r = 0; r < ranks; ++r) {
    const Piece piece = piece_in(all, shard, r);
    copy(all.part(piece.begin, 0).data, at(r, piece), piece.count * all.each());
  }
}

using Messages = std::span<const Message>;

}  // namespace

void ThreadEnd::show(const void* mine, const char* call) {
  barrier_->shown[static_cast<std::size_t>(member_)] = mine;
  wait(call);
}

const std::byte* ThreadEnd::shown(int rank) const {
  return static_cast<const std::byte*>(barrier_->shown[static_cast<std::size_t>(rank)]);
}

void ThreadControlGroup::all_gather_bytes(std::span<const std::byte> mine,
                                          std::span<std::byte> all) {
  end_.show(mine.data(), "all_gather_bytes");
  for (int r = 0; r < size(); ++r) {
    copy(all.data() + mine.size() * static_cast<std::size_t>(r), end_.shown(r), mine.size());
  }
  end_.wait("all_gather_bytes");
}

void ThreadControlGroup::broadcast(std::span<std::byte> bytes, int root) {
  end_.show(bytes.data(), "broadcast");
  copy(bytes.data(), end_.shown(root), bytes.size());
  end_.wait("broadcast");
}

void ThreadControlGroup::send(std::span<const std::byte> message, int to) {
  SHARDWISE_CHECK(size() == 2 && to == 1 - rank(), "messages go between the two of a pair");
  end_.show(message.data(), "send_receive");
  end_.wait("send_receive");
}

void ThreadControlGroup::receive(std::span<std::byte> message, int from) {
  SHARDWISE_CHECK(size() == 2 && from == 1 - rank(), "messages go between the two of a pair");
  end_.show(nullptr, "send_receive");
  copy(message.data(), end_.shown(from), message.size());
  end_.wait("send_receive");
}

void ThreadCommunicator::all_gather(const ConstTensorView& mine, const TensorView& all,
                                    std::int64_t shard, DeviceStream& /*stream*/) {
  end_.show(mine.data, "all_gather");
  gather_pieces(all, shard, size(), [&](int r, const Piece&) { return end_.shown(r); });
  end_.wait("all_gather");
}

/// The sum over the ranks of a piece of buffers like `all`.
void ThreadCommunicator::reduce_piece(const ConstTensorView& all, const Piece& piece,
                                      const TensorView& sum, bool add) const {
  const auto of = [&](int r) {
    return ConstTensorView(end_.shown(r), all.count, all.dtype).part(piece.begin, piece.count);
  };
  reduce_in_rank_order(size(), of, sum, add);
}

void ThreadCommunicator::reduce_scatter(const ConstTensorView& all, const TensorView& mine,
                                        std::int64_t shard, bool add, DeviceStream& /*stream*/) {
  end_.show(all.data, "reduce_scatter");
  reduce_piece(all, piece_in(all, shard, rank()), mine, add);
  end_.wait("reduce_scatter");
}

void ThreadCommunicator::all_reduce(const TensorView& values, DeviceStream& /*stream*/) {
  const std::int64_t shard =
      (static_cast<std::int64_t>(values.count) + size() - 1) / std::int64_t{size()};
  end_.show(values.data, "all_reduce");
  // Only this rank reads or writes its piece of any buffer until all have arrived.
  const Piece own = piece_in(values, shard, rank());
  reduce_piece(values, own, values.part(own.begin, own.count), false);
  end_.wait("all_reduce");
  gather_pieces(values, shard, size(), [&](int r, const Piece& piece) {
    return end_.shown(r) + piece.begin * values.each();
  });
  end_.wait("all_reduce");
}

void ThreadCommunicator::all_to_all(const ConstTensorView& all, const TensorView& received,
                                    std::int64_t shard, DeviceStream& /*stream*/) {
  end_.show(all.data, "all_to_all");
  const Piece own = piece_in(all, shard, rank());
  for (int r = 0; r < size(); ++r) {
    const auto begin = static_cast<std::size_t>(shard) * static_cast<std::size_t>(r);
    copy(received.part(begin, 0).data, end_.shown(r) + own.begin * all.each(),
         own.count * all.each());
  }
  end_.wait("all_to_all");
}

void ThreadCommunicator::send_receive(std::span<const Message> messages, DeviceStream& /*stream*/) {
  end_.show(&messages, "send_receive");
  std::vector<std::size_t> from(static_cast<std::size_t>(size()));
  for (const Message& each : messages) {
    if (each.received.count == 0) continue;
    const auto& theirs = *reinterpret_cast<const Messages*>(end_.shown(each.peer));
    cast(each.received, sent_to(theirs, rank(), from[static_cast<std::size_t>(each.peer)]++));
  }
  // Who receives alone has what it came for. The sender's thread may have to wait for a processor
  // that its rank computes on before it sees that.
  const auto sends = [](const Message& each) { return each.sent.count > 0; };
  if (std::ranges::any_of(messages, sends)) {
    end_.wait("send_receive");
  } else {
    end_.leave("send_receive");
  }
}

}  // namespace shardwise::exec
