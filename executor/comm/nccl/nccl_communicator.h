#pragma once

#include <memory>
#include <utility>

#include "executor/comm/communicator.h"
#include "executor/comm/nccl/nccl_handle.h"

namespace shardwise::exec {

/// Tensors in the memory of GPUs, by NCCL. Calls return when they are issued to the stream, which
/// is a CudaStream. Sums only: a scale is folded into a kernel before or after. The sum of a fixed
/// (algorithm, ranks) is deterministic and not that of the rank order.
class NcclCommunicator : public Communicator {
 public:
  /// \param handle  shared by the communicators of one purpose
  NcclCommunicator(std::shared_ptr<NcclHandle> handle, int rank, int size)
      : handle_(std::move(handle)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  static constexpr CommunicatorTraits kTraits = {false, false, false};
  CommunicatorTraits traits() const override { return kTraits; }
  void all_gather(const ConstTensorView& mine, const TensorView& all, std::int64_t shard,
                  DeviceStream& stream) override;
  /// In place where `mine` is this rank's piece of `all`.
  void reduce_scatter(const ConstTensorView& all, const TensorView& mine, std::int64_t shard,
                      bool add, DeviceStream& stream) override;
  void all_reduce(const TensorView& values, DeviceStream& stream) override;
  void all_to_all(const ConstTensorView& all, const TensorView& received, std::int64_t shard,
                  DeviceStream& stream) override;
  void send_receive(std::span<const Message> messages, DeviceStream& stream) override;

 private:
  void check_pieces(const ConstTensorView& all, std::int64_t shard) const;

  std::shared_ptr<NcclHandle> handle_;
  int rank_;
  int size_;
};

}  // namespace shardwise::exec
