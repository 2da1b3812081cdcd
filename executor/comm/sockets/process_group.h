#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/control_group.h"
#include "executor/comm/sockets/process_peers.h"

namespace shardwise::exec {

/// A group of processes that exchange host bytes.
class ProcessControlGroup : public ControlGroup {
 public:
  explicit ProcessControlGroup(std::unique_ptr<ProcessPeers> peers) : peers_(std::move(peers)) {}

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void send(std::span<const std::byte> message, int to) override;
  void receive(std::span<std::byte> message, int from) override;

 private:
  std::unique_ptr<ProcessPeers> peers_;
};

/// A group of processes whose tensors are in host memory. Sums are computed here, of the received
/// pieces and in rank order, so they have the bits that threads give.
class ProcessCommunicator : public Communicator {
 public:
  explicit ProcessCommunicator(std::unique_ptr<ProcessPeers> peers) : peers_(std::move(peers)) {}

  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
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
  Transfers transfers() const { return Transfers(static_cast<std::size_t>(size())); }
  void reduce_block(const ConstTensorView& all, const TensorView& mine, std::int64_t shard,
                    std::int64_t at, bool add, const char* call);
  void reduce_pieces(const ConstTensorView& all, const TensorView& mine, std::int64_t shard,
                     bool add, const char* call);
  void gather_pieces(const TensorView& all, std::int64_t shard, const char* call);

  std::unique_ptr<ProcessPeers> peers_;
  std::vector<std::byte> received_;
};

}  // namespace shardwise::exec
