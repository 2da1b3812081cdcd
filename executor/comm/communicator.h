#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/channel.h"
#include "executor/comm/numbers.h"

namespace shardwise::exec {

/// One rank's end of a group. Every rank of the group makes the same calls in the same order; a
/// call returns once this rank's buffers may be used again. It blocks the thread that calls, which
/// is the one of the operation's stream: streams, not calls, are what runs beside compute.
///
/// Sums are folds in the order of the group's ranks, ((g0 + g1) + g2) + …, element by element, so
/// the same inputs give the same bits on every back end and whatever the timing. Of bf16 numbers
/// each of the additions is rounded to bf16, as each hop of NCCL's ring rounds what it hands on
/// (a ring begins behind the owner of the piece; here every piece begins with rank 0).
///
/// Shards: `all` is cut into size() pieces of `shard` elements, the last of which may be shorter or
/// empty; piece r is rank r's.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Everybody's pieces in everybody's `all`. `mine` may be this rank's piece of `all`.
  virtual void all_gather(const ConstNumbers& mine, const Numbers& all, std::int64_t shard) = 0;
  /// This rank's piece of the sum of all ranks' `all`, in `mine`. With `add` the fold begins with
  /// what `mine` holds, or, where either is bf16, joins it once it is made. `mine` may be this
  /// rank's piece of `all`, unless it is added to.
  virtual void reduce_scatter(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                              bool add) = 0;
  /// The sum of all ranks' `values` in each of them.
  virtual void all_reduce(const Numbers& values) = 0;
  virtual void broadcast(std::span<std::byte> values, int root) = 0;
  /// Piece r of `all` to rank r. What rank r sends lands in `received` from r x shard on, as much
  /// as this rank's piece. \pre received.count >= size() x shard
  virtual void all_to_all(const ConstNumbers& all, const Numbers& received, std::int64_t shard) = 0;
  /// `mine` of every rank, in order, in `all`. \pre equal sizes, all.size() == size() * mine.size()
  virtual void exchange(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// A message to another rank of the group, which receives as many bytes.
  virtual void send(std::span<const std::byte> message, int to) = 0;
  virtual void receive(std::span<std::byte> message, int from) = 0;
};

/// A job's ranks as one of them sees them.
class World {
 public:
  virtual ~World() = default;
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The group of `ranks`, in this order; this rank is one of them.
  virtual std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks,
                                              Channel channel) = 0;
};

/// What every rank of a group says, in their order. \throws IoError when a text is longer than
/// 64 MiB
std::vector<std::string> exchange_texts(Communicator& group, const std::string& own);

/// Elements of piece r of `all` elements cut into pieces of `shard`, and where it begins.
struct Piece {
  std::size_t begin = 0;
  std::size_t count = 0;
};
Piece piece_of(std::int64_t all, std::int64_t shard, int rank);

/// The fold of one piece over the ranks, for those who implement a Communicator: of(r) is rank r's.
void fold(int ranks, const std::function<ConstNumbers(int)>& of, const Numbers& sum, bool add);

}  // namespace shardwise::exec
