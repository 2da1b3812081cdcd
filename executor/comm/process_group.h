#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/communicator.h"

namespace shardwise::exec {

/// How long the groups of a process wait for other processes, and what ends it sooner.
struct Patience {
  AbortSignal* abort = nullptr;
  double seconds = 0;
  int rank = 0;  // of the job, for messages
};

/// A group whose ranks are processes: every collective is made of one exchange of bytes with all of
/// them at once, which is all that a back end implements. Sums are made here, of what was received
/// and in the order of ranks, so they have the bits that threads give.
class ProcessGroup : public Communicator {
 public:
  /// \param ranks  of the job, in the group's order; the process's own is one of them
  ProcessGroup(std::vector<std::int64_t> ranks, const Patience& patience);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  void all_gather(const ConstNumbers& mine, const Numbers& all, std::int64_t shard) override;
  void reduce_scatter(const ConstNumbers& all, const Numbers& mine, std::int64_t shard,
                      bool add) override;
  void all_reduce(const Numbers& values) override;
  void broadcast(std::span<std::byte> values, int root) override;
  void all_to_all(const ConstNumbers& all, const Numbers& received, std::int64_t shard) override;
  void exchange(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void send(std::span<const std::byte> message, int to) override;
  void receive(std::span<std::byte> message, int from) override;

 protected:
  /// What goes to each rank of the group and what comes from it; empty: nothing, as for itself.
  struct Trade {
    explicit Trade(std::size_t ranks) : sent(ranks), received(ranks) {}
    std::vector<std::span<const std::byte>> sent;
    std::vector<std::span<std::byte>> received;
  };
  /// Returns once all of it has been sent and received. \throws Aborted
  virtual void trade(const char* what, const Trade& trade) = 0;
  const Patience& patience() const { return patience_; }
  /// Ends the run as these ranks of the group do not come.
  [[noreturn]] void give_up(const char* what, const std::vector<std::size_t>& missing) const;

 private:
  void fold_block(const ConstNumbers& all, const Numbers& mine, std::int64_t shard, std::int64_t at,
                  bool add, const char* what);
  void sum_pieces(const ConstNumbers& all, const Numbers& mine, std::int64_t shard, bool add,
                  const char* what);
  void gather_pieces(const Numbers& all, std::int64_t shard, const char* what);

  std::vector<std::int64_t> ranks_;
  Patience patience_;
  int rank_ = 0;
  std::vector<std::byte> received_;
};

}  // namespace shardwise::exec
