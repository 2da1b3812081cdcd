#include "executor/comm/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_stream.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return ncclFloat64;
    case DType::fp32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::fp16:
      return ncclFloat16;
    default:
      SHARDWISE_CHECK(false, std::string(name_of(dtype)));
  }
}

cudaStream_t stream_handle(DeviceStream& stream) { return cuda_stream(stream).handle(); }

}  // namespace

void NcclCommunicator::check_pieces(const ConstTensorView& all, std::int64_t shard) const {
  SHARDWISE_CHECK(static_cast<std::int64_t>(all.count) == shard * size_,
                  fmt::format("{} elements are no {} equal pieces of {}: NCCL takes padded shards",
                              all.count, size_, shard));
}

void NcclCommunicator::all_gather(const ConstTensorView& mine, const TensorView& all,
                                  std::int64_t shard, DeviceStream& stream) {
  check_pieces(all, shard);
  SHARDWISE_CHECK(mine.dtype == all.dtype, "a gather moves elements of one type");
  handle_->call("ncclAllGather", mine.count, cuda_stream(stream), [&](ncclComm_t comm) {
    return handle_->context().library->calls().all_gather(
        mine.data, all.data, static_cast<std::size_t>(shard), type_of(all.dtype), comm,
        stream_handle(stream));
  });
}

void NcclCommunicator::reduce_scatter(const ConstTensorView& all, const TensorView& mine,
                                      std::int64_t shard, bool add, DeviceStream& stream) {
  check_pieces(all, shard);
  SHARDWISE_CHECK(!add && mine.dtype == all.dtype, "NCCL adds nothing into a shard");
  handle_->call("ncclReduceScatter", mine.count, cuda_stream(stream), [&](ncclComm_t comm) {
    return handle_->context().library->calls().reduce_scatter(
        all.data, mine.data, static_cast<std::size_t>(shard), type_of(all.dtype), ncclSum, comm,
        stream_handle(stream));
  });
}

void NcclCommunicator::all_reduce(const TensorView& values, DeviceStream& stream) {
  handle_->call("ncclAllReduce", values.count, cuda_stream(stream), [&](ncclComm_t comm) {
    return handle_->context().library->calls().all_reduce(values.data, values.data, values.count,
                                                          type_of(values.dtype), ncclSum, comm,
                                                          stream_handle(stream));
  });
}

void NcclCommunicator::all_to_all(const ConstTensorView& all, const TensorView& received,
                                  std::int64_t shard, DeviceStream& stream) {
  check_pieces(all, shard);
  std::vector<Message> messages;
  const auto count = static_cast<std::size_t>(shard);
  for (int r = 0; r < size_; ++r) {
    const std::size_t begin = count * static_cast<std::size_t>(r);
    messages.push_back({r, all.part(begin, count), received.part(begin, count)});
  }
  send_receive(messages, stream);
}

void NcclCommunicator::send_receive(std::span<const Message> messages, DeviceStream& stream) {
  if (messages.empty()) return;
  std::size_t elements = 0;
  for (const Message& each : messages) elements += each.sent.count + each.received.count;
  handle_->call("ncclSend and ncclRecv", elements, cuda_stream(stream), [&](ncclComm_t comm) {
    const NcclCalls& calls = handle_->context().library->calls();
    ncclResult_t first = calls.group_start();
    if (first != ncclSuccess) return first;
    const auto keep = [&](ncclResult_t result) {
      if (first == ncclSuccess) first = result == ncclInProgress ? ncclSuccess : result;
    };
    for (const Message& each : messages) {
      if (each.sent.count > 0) {
        keep(calls.send(each.sent.data, each.sent.count, type_of(each.sent.dtype), each.peer, comm,
                        stream_handle(stream)));
      }
      if (each.received.count > 0) {
        keep(calls.receive(each.received.data, each.received.count, type_of(each.received.dtype),
                           each.peer, comm, stream_handle(stream)));
      }
    }
    // A group that was begun is ended, whatever went wrong in it.
    const ncclResult_t ended = calls.group_end();
    return first == ncclSuccess ? ended : first;
  });
}

}  // namespace shardwise::exec
