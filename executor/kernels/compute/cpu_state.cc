// What of CpuCompute moves tensors and updates a rank's state.
#include <algorithm>
#include <mutex>
#include <numeric>

#include "executor/kernels/compute/cpu_compute.h"
#include "executor/optimizer/exact_sum.h"

namespace shardwise::exec {
namespace {

/// Calls part(begin, count) for parts of `all` elements, some on each thread.
template <class Part>
void for_parts(std::size_t all, Workers& workers, Part part) {
  constexpr std::size_t kPart = std::size_t{1} << 17;
  workers.run(static_cast<std::int64_t>((all + kPart - 1) / kPart), [&](std::int64_t task) {
    const std::size_t begin = static_cast<std::size_t>(task) * kPart;
    part(begin, std::min(kPart, all - begin));
  });
}

ExactSquares squares_in(const std::byte* sums) {
  return ExactSquares::from_bytes(
      std::span<const std::byte, ExactSquares::kBytes>(sums, ExactSquares::kBytes));
}

}  // namespace

void CpuCompute::clear(const TensorView& tensor, DeviceStream& /*stream*/) { exec::clear(tensor); }

void CpuCompute::cast(const TensorView& to, const ConstTensorView& from, DeviceStream& /*stream*/) {
  exec::cast(to, from);
}

void CpuCompute::accumulate(const TensorView& sum, const ConstTensorView& each,
                            DeviceStream& /*stream*/) {
  exec::accumulate(sum, each);
}

void CpuCompute::scale(const ScaleWork& w, DeviceStream& /*stream*/) {
  exec::scale(w.tensor, *w.factor);
}

void CpuCompute::token_factor(const TokenFactorWork& w, DeviceStream& /*stream*/) {
  const std::int64_t tokens = std::accumulate(w.tokens, w.tokens + w.ranks, std::int64_t{0});
  *w.factor = 1 / static_cast<float>(std::max<std::int64_t>(1, tokens));
}

void CpuCompute::sum_ranks(const SumRanksWork& w, DeviceStream& /*stream*/) {
  const auto piece = [&](std::int64_t rank) {
    return w.pieces.part(static_cast<std::size_t>(rank * w.stride), w.shard.count);
  };
  exec::cast(w.sums, piece(0));
  for (std::int64_t rank = 1; rank < w.ranks; ++rank) exec::accumulate(w.sums, piece(rank));
  if (w.joins) return exec::accumulate(w.shard, w.sums);
  exec::cast(w.shard, w.sums);
}

std::int64_t CpuCompute::squares_bytes() const { return ExactSquares::kBytes; }

void CpuCompute::squares(const SquaresWork& w, DeviceStream& /*stream*/) {
  ExactSquares sum;
  std::mutex mutex;
  for (const ConstTensorView& tensor : w.tensors) {
    // The sum is exact: it does not matter who adds what first.
    const auto add = [&](std::size_t begin, std::size_t count) {
      ExactSquares part;
      for_blocks(tensor.part(begin, count),
                 [&](std::size_t, std::span<const float> block) { part.add(block); });
      const std::lock_guard lock(mutex);
      sum.add(part);
    };
    if (w.beside_others) {
      add(0, tensor.count);
    } else {
      for_parts(tensor.count, workers_, add);
    }
  }
  std::ranges::copy(sum.bytes(), w.sums);
}

void CpuCompute::squares_norm(const SquaresNormWork& w, DeviceStream& /*stream*/) {
  ExactSquares sum;
  for (std::int64_t rank = 0; rank < w.ranks; ++rank) {
    sum.add(squares_in(w.sums + rank * squares_bytes()));
  }
  *w.norm = sum.norm();
  if (w.clip_factor != nullptr) {
    *w.clip_factor = static_cast<float>(clip_factor(w.clip_norm, *w.norm));
  }
}

void CpuCompute::check_gradients(const GradientCheckWork& w, DeviceStream& /*stream*/) {
  exec::check_gradients(w.rules, squares_in(w.sums).norm(), w.bucket, *w.state);
}

void CpuCompute::adamw(const AdamWork& w, DeviceStream& /*stream*/) {
  for (const AdamShard& shard : w.shards) {
    for_parts(shard.gradient.count, workers_, [&](std::size_t begin, std::size_t count) {
      for_blocks(shard.gradient.part(begin, count), [&](std::size_t from,
                                                        std::span<const float> gradient) {
        const auto part = [&](const TensorView& all) {
          return all.part(begin + from, gradient.size());
        };
        const float decay = shard.decays ? w.step->decay : 1.0F;
        const std::span<float> first = part(shard.exp_avg).floats();
        const std::span<float> second = part(shard.exp_avg_sq).floats();
        if (!shard.remainders.empty()) {
          auto* const weights = reinterpret_cast<Bf16*>(part(shard.stored).data);
          const WeightHalves halves = {{weights, gradient.size()},
                                       shard.remainders.subspan(begin + from, gradient.size())};
          return exec::adamw(*w.step, decay, gradient, halves, first, second);
        }
        const TensorView main = part(shard.main);
        if (main.dtype == DType::bf16) {
          const RoundedWeights rounded = {{reinterpret_cast<Bf16*>(main.data), main.count},
                                          shard.tensor,
                                          shard.first + begin + from};
          return exec::adamw(*w.step, decay, gradient, rounded, first, second);
        }
        exec::adamw(*w.step, decay, gradient, main.floats(), first, second);
        if (shard.stored.count > 0) exec::cast(part(shard.stored), main);
      });
    });
  }
}

}  // namespace shardwise::exec
