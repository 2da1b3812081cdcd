#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "executor/comm/barrier.h"
#include "executor/comm/communicator.h"
#include "executor/comm/control_group.h"

namespace shardwise::exec {

/// A rank's end of a group of threads that read one another's memory.
class ThreadEnd {
 public:
  ThreadEnd(std::shared_ptr<Barrier> barrier, int member)
      : barrier_(std::move(barrier)), member_(member) {}
  int rank() const { return member_; }
  int size() const { return static_cast<int>(barrier_->size()); }
  /// Others may read `mine` from now on: waits for theirs.
  void show(const void* mine, const char* call);
  const std::byte* shown(int rank) const;
  void wait(const char* call) { barrier_->wait(member_, call); }
  /// Where nobody reads what this rank has shown: does not wait for the others.
  void leave(const char* call) { barrier_->leave(member_, call); }

 private:
  std::shared_ptr<Barrier> barrier_;
  int member_;
};

class ThreadControlGroup : public ControlGroup {
 public:
  explicit ThreadControlGroup(ThreadEnd end) : end_(std::move(end)) {}

  int rank() const override { return end_.rank(); }
  int size() const override { return end_.size(); }
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  /// A message takes a wait of two, which only groups of two have. \pre size() == 2
  void send(std::span<const std::byte> message, int to) override;
  void receive(std::span<std::byte> message, int from) override;

 private:
  ThreadEnd end_;
};

/// Deterministic: a rank computes its own piece of a sum from the buffers of all, in rank order.
class ThreadCommunicator : public Communicator {
 public:
  explicit ThreadCommunicator(ThreadEnd end) : end_(std::move(end)) {}

  int rank() const override { return end_.rank(); }
  int size() const override { return end_.size(); }
  CommunicatorTraits traits() const override { return kAllTraits; }
  void all_gather(const ConstTensorView& mine, const TensorView& all, std::int64_t shard,
                  DeviceStream& stream) override;
  void reduce_scatter(const ConstTensorView& all, const TensorView& mine, std::int64_t shard,
                      bool add, DeviceStream& stream) override;
  void all_reduce(const TensorView& values, DeviceStream& stream) override;
  void all_to_all(const ConstTensorView& all, const TensorView& received, std::int64_t shard,
                  DeviceStream& stream) override;
  void send_receive(std::span<const Message> messages, DeviceStream& stream) override;

 private:
  void reduce_piece(const ConstTensorView& all, const Piece& piece, const TensorView& sum,
                    bool add) const;

  ThreadEnd end_;
};

}  // namespace shardwise::exec
