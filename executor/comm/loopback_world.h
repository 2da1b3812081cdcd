#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/world.h"
#include "executor/device/device.h"
#include "executor/kernels/compute/compute.h"

namespace shardwise::exec {

/// A job whose ranks are threads of this process and share one GPU, each with streams of its own:
/// tensors by copies and sums of the device between the ranks' memory, host bytes as in the world
/// of threads. Deterministic: sums have the order of ranks and the bits of the threads' world.
///
/// Streams of different ranks wait for each other by events. A capture may not wait for an event of
/// another rank's, so a step of such a rank is no graph. What steps take says nothing about ranks
/// with a GPU each.
class LoopbackWorld final : public World {
 public:
  /// Reason that a step with several ranks is no graph.
  static constexpr const char* kNoGraph =
      "ranks of one process wait for one another's events, which no capture may hold";

  /// \param control  the same ranks, threads of this process  \param device  of this rank: the same
  /// GPU as that of the others  \param compute  of the device. All outlive this.
  LoopbackWorld(World& control, Device& device, Compute& compute)
      : control_(control), device_(device), compute_(compute) {}

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  CommunicatorTraits traits() const override { return kAllTraits; }
  std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                              Control control) override {
    return control_.control_group(ranks, control);
  }
  /// Takes LoopbackCommunicator::kStagingBytes of the device.
  std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                             Stream stream) override;

 private:
  World& control_;
  Device& device_;
  Compute& compute_;
};

/// Calls issue to their stream and wait on the host until the other ranks have issued too and
/// recorded their events. They wait for nothing of the device. Each rank calls from one thread.
/// \throws std::runtime_error when ranks issue different collectives
class LoopbackCommunicator final : public Communicator {
 public:
  static constexpr std::int64_t kStagingBytes = std::int64_t{1} << 20;

  /// \param everyone  the group's ranks
  LoopbackCommunicator(std::unique_ptr<ControlGroup> everyone, Device& device, Compute& compute);

  int rank() const override { return everyone_->rank(); }
  int size() const override { return everyone_->size(); }
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
  /// Record of a rank that has issued its part of a collective. Others read it as long as the
  /// collective is issued.
  struct Issued {
    const char* call = nullptr;
    std::size_t count = 0;
    DType dtype = DType::fp32;
    const std::byte* data = nullptr;
  };
  /// State of a rank for others: its tensors are there; its piece is summed; it has read those of
  /// others. Recorded again once all ranks have come to the next collective, and so wait.
  enum class Part : std::uint8_t { there, summed, read };
  struct Shown {
    std::array<std::unique_ptr<DeviceEvent>, 3> events;  // by part
    std::vector<Message> messages;                       // that it has issued last
  };
  /// Parts that all ranks share. They live as long as one of them does, so that none looks at what
  /// a rank that failed has left.
  using Shared = std::vector<Shown>;

  static std::shared_ptr<Shared> shared_by(ControlGroup& everyone);
  /// Work that each rank has issued; it comes before what the stream gets next.
  std::vector<Issued> meet(const Issued& mine, Part part, DeviceStream& stream);
  Shown& shown(int rank) { return (*shared_)[static_cast<std::size_t>(rank)]; }
  void reduce_piece(const ConstTensorView& all, const Piece& piece, const TensorView& sum, bool add,
                    const std::vector<Issued>& of, DeviceStream& stream);
  void copy(const TensorView& to, const ConstTensorView& from, DeviceStream& stream);

  std::unique_ptr<ControlGroup> everyone_;
  Device& device_;
  Compute& compute_;
  DeviceMemory staging_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace shardwise::exec
