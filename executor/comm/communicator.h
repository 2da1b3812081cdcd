#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "executor/device/stream.h"
#include "executor/kernels/tensor_view.h"

namespace shardwise::exec {

/// Promises of some back ends only. Code that relies on one of these asks for it.
struct CommunicatorTraits {
  /// Sums are ((g0 + g1) + g2) + …, element by element, so the same inputs give the same bits
  /// whatever the timing and the back end. Each addition of bf16 numbers is rounded to bf16, as
  /// each hop of NCCL's ring rounds (a ring begins behind the owner of the piece; here every piece
  /// begins with rank 0). A run whose communicators lack it prints so at its start.
  bool sums_in_rank_order = false;
  /// reduce_scatter() takes `add`, and a shard of another type than what is summed.
  bool adds_into_shard = false;
  /// The last pieces of `all` may be shorter than the others, or empty.
  bool ragged_shards = false;

  friend bool operator==(const CommunicatorTraits&, const CommunicatorTraits&) = default;
};
/// Traits of back ends whose sums are made by our own code.
inline constexpr CommunicatorTraits kAllTraits = {true, true, true};

/// A message between this rank and another of a group. Empty tensors are not sent.
struct Message {
  int peer = 0;
  ConstTensorView sent;
  TensorView received;
};

/// One rank's end of a group that sums and moves tensors in the memory of its device. Every rank of
/// the group issues the same collectives in the same order. A call returns when its work is issued
/// to `stream`; on the CPU the calling thread is the stream, so it blocks until this rank's buffers
/// may be used again. Host bytes go through a ControlGroup.
///
/// Shards: `all` is cut into size() pieces of `shard` elements; piece r is rank r's. All pieces are
/// whole unless traits().ragged_shards.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual CommunicatorTraits traits() const = 0;

  /// The pieces of all ranks in the `all` of each. `mine` may be this rank's piece of `all`.
  virtual void all_gather(const ConstTensorView& mine, const TensorView& all, std::int64_t shard,
                          DeviceStream& stream) = 0;
  /// This rank's piece of the sum of all ranks' `all`, in `mine`, which may be this rank's piece of
  /// `all` unless it is added to.
  /// \param add  the sum begins with the values of `mine`, or, where either is bf16, is added to
  ///             them once. \pre false, and one type, unless traits().adds_into_shard
  virtual void reduce_scatter(const ConstTensorView& all, const TensorView& mine,
                              std::int64_t shard, bool add, DeviceStream& stream) = 0;
  /// The sum of all ranks' `values` in each of them.
  virtual void all_reduce(const TensorView& values, DeviceStream& stream) = 0;
  /// Piece r of `all` to rank r. The piece that rank r sends is received from element r x shard on,
  /// with the length of this rank's piece. \pre received.count >= size() x shard
  virtual void all_to_all(const ConstTensorView& all, const TensorView& received,
                          std::int64_t shard, DeviceStream& stream) = 0;
  /// Sends and receives as one group: none waits for another. All ranks of the group call, with no
  /// messages where they have none. The k-th tensor sent from one rank to another is the k-th that
  /// the other receives from it, of the same size.
  virtual void send_receive(std::span<const Message> messages, DeviceStream& stream) = 0;
};

/// Elements of piece r of `all` elements cut into pieces of `shard`, and where it begins.
struct Piece {
  std::size_t begin = 0;
  std::size_t count = 0;
};
Piece piece_of(std::int64_t all, std::int64_t shard, int rank);
Piece piece_in(const ConstTensorView& all, std::int64_t shard, int rank);

/// The k-th tensor that is sent to a rank. \pre there is one
const ConstTensorView& sent_to(std::span<const Message> messages, int rank, std::size_t k);

/// Bytes in the memory of the device: `mine` of every rank, in order, in `all`.
/// \pre equal sizes, a multiple of 4
void all_gather_bytes(Communicator& group, std::span<const std::byte> mine,
                      std::span<std::byte> all, DeviceStream& stream);

/// The sum of one piece over the ranks, as traits().sums_in_rank_order says. \param of  rank r's
void reduce_in_rank_order(int ranks, const std::function<ConstTensorView(int)>& of,
                          const TensorView& sum, bool add);

}  // namespace shardwise::exec
