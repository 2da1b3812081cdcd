#pragma once

// Every call of a communicator, and the buffers that it works on.
#include <cstdint>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/kernels/element.h"

namespace shardwise::exec::test {

inline constexpr std::int64_t kShard = 6;

/// Small integers: their sums are exact in fp32 and bf16 in any order.
inline std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((7 * rank + 3 * static_cast<int>(i)) % 23);
  }
  return values;
}

/// The buffers of a step, which must outlive its streams.
struct Step {
  Step(int rank, int ranks)
      : gathered(values_of(rank, all(ranks))),
        reduced(values_of(rank, all(ranks))),
        summed(values_of(rank, 17)),
        sent(values_of(rank + 40, all(ranks))),
        received(all(ranks), -1),
        next(3, -1) {
    for (const float each : values_of(rank, 8)) narrow.push_back(from_float<Bf16>(each));
  }
  static std::size_t all(int ranks) {
    return static_cast<std::size_t>(kShard) * static_cast<std::size_t>(ranks);
  }
  /// Every call, each reading what the one before it left.
  void issue(Communicator& group, DeviceStream& stream) {
    const auto own = static_cast<std::size_t>(group.rank() * kShard);
    const TensorView whole(gathered);
    group.all_gather(whole.part(own, kShard), gathered, kShard, stream);
    const TensorView sums(reduced);
    group.reduce_scatter(reduced, sums.part(own, kShard), kShard, false, stream);
    group.all_gather(sums.part(own, kShard), gathered, kShard, stream);
    group.all_reduce(summed, stream);
    group.all_reduce({reinterpret_cast<std::byte*>(narrow.data()), narrow.size(), DType::bf16},
                     stream);
    group.all_to_all(sent, received, kShard, stream);
    const TensorView places(next);
    const int right = (group.rank() + 1) % group.size();
    const int left = (group.rank() + group.size() - 1) % group.size();
    const Message messages[] = {{right, ConstTensorView(TensorView(received)).part(0, 2), {}},
                                {left, {}, places.part(0, 2)},
                                {left, ConstTensorView(TensorView(summed)).part(0, 1), {}},
                                {right, {}, places.part(2, 1)}};
    group.send_receive(messages, stream);
  }
  std::vector<std::vector<float>> results(int rank) const {
    const auto own = static_cast<std::ptrdiff_t>(rank * kShard);
    std::vector<float> wide;
    for (const Bf16 each : narrow) wide.push_back(to_float(each));
    return {gathered, {reduced.begin() + own, reduced.begin() + own + kShard},
            summed,   wide,
            received, next};
  }

  std::vector<float> gathered;
  std::vector<float> reduced;
  std::vector<float> summed;
  std::vector<float> sent;
  std::vector<float> received;
  std::vector<float> next;
  std::vector<Bf16> narrow;
};

}  // namespace shardwise::exec::test
