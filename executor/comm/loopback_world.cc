#include "executor/comm/loopback_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "executor/comm/abort.h"

namespace shardwise::exec {
std::unique_ptr<Communicator> LoopbackWorld::communicator(const std::vector<std::int64_t>& ranks,
                                                          Stream /*stream*/) {
  // A rank's thread issues in the order of all ranks, so groups of several streams may share one.
  return std::make_unique<LoopbackCommunicator>(
      control_.control_group(ranks, Control::communicators), device_, compute_);
}

LoopbackCommunicator::LoopbackCommunicator(std::unique_ptr<ControlGroup> everyone, Device& device,
                                           Compute& compute)
    : everyone_(std::move(everyone)),
      device_(device),
      compute_(compute),
      staging_(device.allocate(kStagingBytes, MemorySpace::device)),
      shared_(shared_by(*everyone_)) {
  for (std::unique_ptr<DeviceEvent>& each : shown(rank()).events) each = device.event();
}

std::shared_ptr<LoopbackCommunicator::Shared> LoopbackCommunicator::shared_by(
    ControlGroup& everyone) {
  // What member 0 makes, by a number: a pointer would be of nothing once member 0 has failed.
  static std::mutex mutex;
  static std::map<std::uint64_t, std::weak_ptr<Shared>> all;
  static std::uint64_t next = 0;
  std::uint64_t number = 0;
  std::shared_ptr<Shared> shared;
  if (everyone.rank() == 0) {
    shared = std::make_shared<Shared>(static_cast<std::size_t>(everyone.size()));
    const std::lock_guard<std::mutex> lock(mutex);
    std::erase_if(all, [](const auto& each) { return each.second.expired(); });
    all[number = next++] = shared;
  }
  everyone.broadcast(std::as_writable_bytes(std::span(&number, 1)), 0);
  if (everyone.rank() != 0) {
    const std::lock_guard<std::mutex> lock(mutex);
    shared = all[number].lock();
  }
  if (!shared) throw Aborted("another rank failed");
  // All have it.
  std::uint64_t none = 0;
  everyone.broadcast(std::as_writable_bytes(std::span(&none, 1)), 0);
  return shared;
}

std::vector<LoopbackCommunicator::Issued> LoopbackCommunicator::meet(const Issued& mine, Part part,
                                                                     DeviceStream& stream) {
  const auto event = static_cast<std::size_t>(part);
  device_.record(*shown(rank()).events[event], stream);
  std::vector<Issued> all(static_cast<std::size_t>(size()));
  everyone_->all_gather_bytes(std::as_bytes(std::span(&mine, 1)),
                              std::as_writable_bytes(std::span(all)));
  for (int r = 0; r < size(); ++r) {
    const Issued& other = all[static_cast<std::size_t>(r)];
    if (std::string_view(other.call) != mine.call || other.count != mine.count ||
        other.dtype != mine.dtype) {
      throw std::runtime_error(fmt::format(
          "issues {} of {} {} where member {} of its group issues {} of {} {}", mine.call,
          mine.count, name_of(mine.dtype), r, other.call, other.count, name_of(other.dtype)));
    }
    if (r != rank()) device_.wait(stream, *shown(r).events[event]);
  }
  return all;
}

void LoopbackCommunicator::copy(const TensorView& to, const ConstTensorView& from,
                                DeviceStream& stream) {
  if (to.count > 0 && to.data != from.data) compute_.cast(to, from, stream);
}

void LoopbackCommunicator::all_gather(const ConstTensorView& mine, const TensorView& all,
                                      std::int64_t shard, DeviceStream& stream) {
  const Issued own = {"all_gather", all.count, all.dtype, mine.data};
  const std::vector<Issued> of = meet(own, Part::there, stream);
  for (int r = 0; r < size(); ++r) {
    const Piece piece = piece_in(all, shard, r);
    const std::byte* const from = of[static_cast<std::size_t>(r)].data;
    copy(all.part(piece.begin, piece.count), {from, piece.count, all.dtype}, stream);
  }
  meet(own, Part::read, stream);
}

/// As reduce_in_rank_order() sums, by blocks: the sum may lie over what this rank sends.
void LoopbackCommunicator::reduce_piece(const ConstTensorView& all, const Piece& piece,
                                        const TensorView& sum, bool add,
                                        const std::vector<Issued>& of, DeviceStream& stream) {
  const bool narrow = all.dtype == DType::bf16;
  const bool begins = add && !narrow && sum.dtype == DType::fp32;
  const std::size_t each = narrow ? sizeof(std::uint16_t) : sizeof(float);
  const TensorView staging(staging_.at(), static_cast<std::size_t>(kStagingBytes) / each,
                           all.dtype);
  for (std::size_t at = 0; at < piece.count; at += staging.count) {
    const std::size_t n = std::min(staging.count, piece.count - at);
    const auto from = [&](int r) {
      return ConstTensorView(of[static_cast<std::size_t>(r)].data, all.count, all.dtype)
          .part(piece.begin + at, n);
    };
    const TensorView total = staging.part(0, n);
    const TensorView to = sum.part(at, n);
    compute_.cast(total, begins ? ConstTensorView(to) : from(0), stream);
    for (int r = begins ? 0 : 1; r < size(); ++r) compute_.accumulate(total, from(r), stream);
    if (add && !begins) {
      compute_.accumulate(to, total, stream);
    } else {
      compute_.cast(to, total, stream);
    }
  }
}

void LoopbackCommunicator::reduce_scatter(const ConstTensorView& all, const TensorView& mine,
                                          std::int64_t shard, bool add, DeviceStream& stream) {
  const Issued own = {"reduce_scatter", all.count, all.dtype, all.data};
  const std::vector<Issued> of = meet(own, Part::there, stream);
  reduce_piece(all, piece_in(all, shard, rank()), mine, add, of, stream);
  meet(own, Part::read, stream);
}

void LoopbackCommunicator::all_reduce(const TensorView& values, DeviceStream& stream) {
  const std::int64_t shard =
      (static_cast<std::int64_t>(values.count) + size() - 1) / std::int64_t{size()};
  const Issued own = {"all_reduce", values.count, values.dtype, values.data};
  const std::vector<Issued> of = meet(own, Part::there, stream);
  // Only this rank reads or writes its piece of any buffer until all have summed theirs.
  const Piece mine = piece_in(values, shard, rank());
  reduce_piece(values, mine, values.part(mine.begin, mine.count), false, of, stream);
  meet(own, Part::summed, stream);
  for (int r = 0; r < size(); ++r) {
    const Piece piece = piece_in(values, shard, r);
    const ConstTensorView from(of[static_cast<std::size_t>(r)].data, values.count, values.dtype);
    copy(values.part(piece.begin, piece.count), from.part(piece.begin, piece.count), stream);
  }
  meet(own, Part::read, stream);
}

void LoopbackCommunicator::all_to_all(const ConstTensorView& all, const TensorView& received,
                                      std::int64_t shard, DeviceStream& stream) {
  const Issued own = {"all_to_all", all.count, all.dtype, all.data};
  const std::vector<Issued> of = meet(own, Part::there, stream);
  const Piece mine = piece_in(all, shard, rank());
  for (int r = 0; r < size(); ++r) {
    const auto begin = static_cast<std::size_t>(shard) * static_cast<std::size_t>(r);
    const ConstTensorView from(of[static_cast<std::size_t>(r)].data, all.count, all.dtype);
    copy(received.part(begin, mine.count), from.part(mine.begin, mine.count), stream);
  }
  meet(own, Part::read, stream);
}

void LoopbackCommunicator::send_receive(std::span<const Message> messages, DeviceStream& stream) {
  const Issued own = {"send_receive", 0, DType::fp32, nullptr};
  shown(rank()).messages.assign(messages.begin(), messages.end());
  meet(own, Part::there, stream);
  std::vector<std::size_t> next(static_cast<std::size_t>(size()));  // tensor, by who sends it
  for (const Message& each : messages) {
    if (each.received.count == 0) continue;
    std::size_t& tensor = next[static_cast<std::size_t>(each.peer)];
    copy(each.received, sent_to(shown(each.peer).messages, rank(), tensor++), stream);
  }
  meet(own, Part::read, stream);
}

}  // namespace shardwise::exec
