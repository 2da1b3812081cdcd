#include <algorithm>

#include "executor/kernels/cuda/device_code/typed.h"
#include "executor/kernels/cuda/movement.h"
#include "executor/optimizer/stochastic_rounding.h"
#include "executor/optimizer/weight_halves.h"

namespace shardwise::exec::cuda {
namespace {

// Compiled without fused multiply-adds, as executor/optimizer/adamw.cc: the CPU's bits. Memory is
// what it waits for.

constexpr int kStep = 4;

struct Shard {
  const std::byte* gradient;
  float* main;                // fp32 weights, or null
  std::byte* stored;          // receives them; without main, bf16 weights themselves
  std::uint16_t* remainders;  // of those in halves; of others null: rounded stochastically
  float* exp_avg;
  float* exp_avg_sq;
  std::int64_t count;
  std::int64_t first_block;
  std::uint64_t tensor;
  std::uint64_t first;  // of the tensor's elements
  bool decays;
  bool gradient_is_bf16;
  bool stored_is_bf16;
  bool takes_vectors;
};
constexpr int kShardsALaunch = 40;  // what a kernel's parameters hold: 3.5 KiB
struct Shards {
  Shard at[kShardsALaunch];
  int count;
};

template <int kCount>
struct Weights {
  Chunk<float, kCount> main;
  Chunk<float, kCount> squares;
};

template <int kCount>
__device__ Weights<kCount> load_weights(const Shard& shard, std::int64_t first) {
  Weights<kCount> w = {{}, load_chunk<kCount>(shard.exp_avg_sq + first)};
  if (shard.main != nullptr) {
    w.main = load_chunk<kCount>(shard.main + first);
    return w;
  }
  const auto weights = load_chunk<kCount>(reinterpret_cast<const Bf16*>(shard.stored) + first);
  if (shard.remainders == nullptr) {
    SHARDWISE_UNROLL
    for (int i = 0; i < kCount; ++i) w.main.at[i] = widen(weights.at[i]);
    return w;
  }
  const auto remainders = load_chunk<kCount>(shard.remainders + first);
  SHARDWISE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t square = float_bits(w.squares.at[i]);
    w.main.at[i] = float_of_bits(joined_weight(weights.at[i], remainders.at[i], square));
    w.squares.at[i] = float_of_bits(square_alone(square));
  }
  return w;
}

template <int kCount>
__device__ void store_halves(const Shard& shard, std::int64_t first, Weights<kCount>& w) {
  Chunk<std::uint16_t, kCount> remainders = {};
  SHARDWISE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t main = float_bits(w.main.at[i]);
    remainders.at[i] = remainder_of(main);
    w.squares.at[i] = float_of_bits(square_beside(main, float_bits(w.squares.at[i])));
  }
  store_chunk(shard.remainders + first, remainders);
}

template <int kCount>
__device__ void store_rounded(std::uint64_t rounding_seed, const Shard& shard, std::int64_t first,
                              const Weights<kCount>& w) {
  const std::uint64_t key = rounding_key(rounding_seed, shard.tensor);
  const std::uint64_t element = shard.first + static_cast<std::uint64_t>(first);
  Chunk<Bf16, kCount> made = {};
  SHARDWISE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    made.at[i] = stochastically_rounded(float_bits(w.main.at[i]),
                                        rounding_draw(key, element + static_cast<unsigned>(i)));
  }
  store_chunk(reinterpret_cast<Bf16*>(shard.stored) + first, made);
}

template <int kCount>
__device__ void store_weights(const AdamStep& s, const Shard& shard, std::int64_t first,
                              Weights<kCount> w) {
  const bool rounds = shard.main == nullptr && shard.remainders == nullptr;
  if (shard.main != nullptr) store_chunk(shard.main + first, w.main);
  if (shard.remainders != nullptr) store_halves<kCount>(shard, first, w);
  store_chunk(shard.exp_avg_sq + first, w.squares);
  if (rounds) return store_rounded<kCount>(s.rounding_seed, shard, first, w);
  if (shard.stored == nullptr) return;
  if (shard.stored_is_bf16) {
    Chunk<Bf16, kCount> made = {};
    SHARDWISE_UNROLL
    for (int i = 0; i < kCount; ++i) made.at[i] = narrow<Bf16>(w.main.at[i]);
    store_chunk(reinterpret_cast<Bf16*>(shard.stored) + first, made);
  } else {
    store_chunk(reinterpret_cast<float*>(shard.stored) + first, w.main);
  }
}

template <int kCount>
__device__ void update(const AdamStep& s, const Shard& shard, std::int64_t first) {
  const float rest1 = 1 - s.beta1;
  const float rest2 = 1 - s.beta2;
  const float rate = s.learning_rate * s.moment_correction;
  const float decay = shard.decays ? s.decay : 1.0F;
  Chunk<float, kCount> gradient = {};
  if (shard.gradient_is_bf16) {
    const auto in = load_chunk<kCount>(reinterpret_cast<const Bf16*>(shard.gradient) + first);
    SHARDWISE_UNROLL
    for (int i = 0; i < kCount; ++i) gradient.at[i] = widen(in.at[i]);
  } else {
    gradient = load_chunk<kCount>(reinterpret_cast<const float*>(shard.gradient) + first);
  }
  Weights<kCount> weights = load_weights<kCount>(shard, first);
  auto means = load_chunk<kCount>(shard.exp_avg + first);
  SHARDWISE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const float g = gradient.at[i] * s.gradient_scale;
    const float mean = s.beta1 * means.at[i] + rest1 * g;
    const float square = s.beta2 * weights.squares.at[i] + rest2 * g * g;
    const float root = sqrtf(square) * s.root_correction + s.epsilon;
    means.at[i] = mean;
    weights.squares.at[i] = square;
    weights.main.at[i] = weights.main.at[i] * decay - rate * mean / root;
  }
  store_chunk(shard.exp_avg + first, means);
  store_weights<kCount>(s, shard, first, weights);
}

/// A block has a chunk of a shard for each of its threads.
__global__ void __launch_bounds__(kChunkThreads)
    update_shards(const __grid_constant__ Shards shards, const AdamStep* step) {
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  int own = 0;
  for (int end = shards.count; end - own > 1;) {
    const int middle = (own + end) / 2;
    if (shards.at[middle].first_block <= block) {
      own = middle;
    } else {
      end = middle;
    }
  }
  const Shard& shard = shards.at[own];
  const std::int64_t first =
      ((block - shard.first_block) * kChunkThreads + static_cast<int>(threadIdx.x)) * kStep;
  if (shard.takes_vectors && first + kStep <= shard.count) {
    update<kStep>(*step, shard, first);
  } else {
    for (int i = 0; i < kStep && first + i < shard.count; ++i) update<1>(*step, shard, first + i);
  }
}

Shard shard_of(const AdamShard& s, std::int64_t first_block) {
  const bool rounds = s.main.count > 0 && s.main.dtype == DType::bf16;
  float* const main = s.remainders.empty() && !rounds ? elements<float>(s.main) : nullptr;
  const auto* const exp_avg = elements<float>(s.exp_avg);
  const auto* const exp_avg_sq = elements<float>(s.exp_avg_sq);
  std::byte* const kept = s.stored.count > 0 ? s.stored.data : nullptr;
  std::byte* const stored = rounds ? s.main.data : kept;
  return {.gradient = s.gradient.data,
          .main = main,
          .stored = stored,
          .remainders = s.remainders.data(),
          .exp_avg = elements<float>(s.exp_avg),
          .exp_avg_sq = elements<float>(s.exp_avg_sq),
          .count = static_cast<std::int64_t>(s.gradient.count),
          .first_block = first_block,
          .tensor = s.tensor,
          .first = s.first,
          .decays = s.decays,
          .gradient_is_bf16 = s.gradient.dtype == DType::bf16,
          .stored_is_bf16 = s.stored.dtype == DType::bf16,
          .takes_vectors = takes_vectors(s.gradient.data) && takes_vectors(main) &&
                           takes_vectors(exp_avg) && takes_vectors(exp_avg_sq) &&
                           takes_vectors(stored) && takes_vectors(s.remainders.data())};
}

}  // namespace

void adamw(const AdamWork& w, cudaStream_t stream) {
  auto next = w.shards.begin();
  while (next != w.shards.end()) {
    Shards some = {};
    std::int64_t blocks = 0;
    for (; next != w.shards.end() && some.count < kShardsALaunch; ++next) {
      if (next->gradient.count == 0) continue;
      some.at[some.count] = shard_of(*next, blocks);
      blocks += pieces(some.at[some.count++].count, std::int64_t{kStep} * kChunkThreads);
    }
    if (blocks == 0) continue;
    launch(stream, "adamw", dim3(static_cast<unsigned>(blocks)), dim3(kChunkThreads), update_shards,
           some, w.step);
  }
}

}  // namespace shardwise::exec::cuda
