#pragma once

#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/reduce.h"
#include "executor/kernels/cuda/norm.h"

namespace shardwise::exec::cuda {

inline constexpr int kNormThreads = 256;  // of a block: one team, or teams of a warp or of half one

/// 1 / sigma and the mean, 0 of an RMSNorm, as `statistics` of norm.h has them.
struct NormMoments {
  float inverse;
  float mean;
};

/// The segments of all rows, numbered.
struct NormSegments {
  NormShape shape;
  std::int64_t count;  // rows x segments

  __device__ std::int64_t x(std::int64_t s) const {
    return s / shape.segments * shape.x_stride + s % shape.segments * shape.width;
  }
  __device__ std::int64_t y(std::int64_t s) const {
    return s / shape.segments * shape.y_stride + s % shape.segments * shape.width;
  }
  template <bool kRms>
  __device__ NormMoments moments(const float* statistics, std::int64_t s) const {
    return {statistics[s], kRms ? 0.0F : statistics[count + s]};
  }
};

template <class Share>
struct NormTeams {
  static constexpr int kInBlock = kNormThreads / Share::kThreads;
  static __device__ std::int64_t first() {
    return static_cast<std::int64_t>(blockIdx.x) * kInBlock + in_block();
  }
  static __device__ int in_block() { return static_cast<int>(threadIdx.x) / Share::kThreads; }
  static __device__ int thread() { return static_cast<int>(threadIdx.x) % Share::kThreads; }
};

/// A segment a team.
template <bool kRms, class Share, class E>
__global__ void __launch_bounds__(kNormThreads)
    norm_rows(NormSegments all, const E* x, E* kept, const E* weight, const E* bias, E* y,
              float* statistics) {
  using Sums = Team<Share::kThreads>;
  SHARDWISE_SHARED(float, places, Sums::kPlaces);
  const std::int64_t s = NormTeams<Share>::first();
  if (s >= all.count) return;  // a whole team
  const int thread = NormTeams<Share>::thread();
  const int width = static_cast<int>(all.shape.width);
  const float n = static_cast<float>(width);
  Sums team(places);
  const typename Share::Row row(x + all.x(s), width, thread);
  float mean = 0;
  if constexpr (!kRms) {
    float sum = 0;
    Share::each(width, thread, [&](int p, int column) {
      const auto in = row.at(p, column);
      for (int i = 0; i < Share::kStep; ++i) sum += widen(in.at[i]);
    });
    mean = team.sum(sum) / n;
  }
  float squares = 0;
  Share::each(width, thread, [&](int p, int column) {
    const auto in = row.at(p, column);
    for (int i = 0; i < Share::kStep; ++i) {
      const float d = widen(in.at[i]) - mean;
      squares += d * d;
    }
  });
  const float inverse = 1.0F / sqrtf(team.sum(squares) / n + all.shape.epsilon);
  Share::each(width, thread, [&](int p, int column) {
    const auto in = row.at(p, column);
    const auto w = load_chunk<Share::kStep>(weight + column);
    auto out = in;
    for (int i = 0; i < Share::kStep; ++i) {
      float normed = (widen(in.at[i]) - mean) * inverse * widen(w.at[i]);
      if (!kRms && bias != nullptr) normed += widen(bias[column + i]);
      out.at[i] = narrow<E>(normed);
    }
    if (kept != nullptr) store_chunk(kept + all.x(s) + column, in);
    store_chunk(y + all.y(s) + column, out);
  });
  if (thread == 0) {
    statistics[s] = inverse;
    if (!kRms) statistics[all.count + s] = mean;
  }
}

/// The sums of a block's teams, each thread's `own` of its columns, added in the order of the teams
/// and left to the last of them.   joined [Share::kMostWidth]
template <class Share, int kSums>
__device__ void join_teams(float (&own)[kSums], float* joined) {
  constexpr int kTeams = NormTeams<Share>::kInBlock;
  for (int team = 0; team < kTeams; ++team) {
    if (team > 0) __syncthreads();
    if (team != NormTeams<Share>::in_block()) continue;
    SHARDWISE_UNROLL
    for (int i = 0; i < kSums; ++i) {
      float& place = joined[i * Share::kThreads + NormTeams<Share>::thread()];
      if (team > 0) own[i] = place + own[i];
      if (team < kTeams - 1) place = own[i];
    }
  }
}

/// Blocks that a multiprocessor has registers for, 128 a thread for two.
template <bool kRms, class Share>
inline constexpr int kNormBlocks = Share::kPlaces* Share::kStep*(kRms ? 1 : 2) > 48 ? 1 : 2;

/// Every teams-th segment a team: d_x, and where the share is held in registers the block's sums
/// for d_weight and d_bias.   parts [1 or 2, blocks, width], null for none
template <bool kRms, class Share, class E>
__global__ void __launch_bounds__(kNormThreads, kNormBlocks<kRms, Share>)
    norm_backward_rows(NormSegments all, const E* x, const E* weight, const float* statistics,
                       const E* d_y, E* d_x, bool adds, float* parts) {
  using Sums = Team<Share::kThreads>;
  SHARDWISE_SHARED(float, places, Sums::kPlaces);
  const int thread = NormTeams<Share>::thread();
  const int width = static_cast<int>(all.shape.width);
  const float n = static_cast<float>(width);
  constexpr bool kPartsHere = Share::kHolds;
  constexpr int kSums = kPartsHere ? Share::kPlaces * Share::kStep : 1;
  float d_weights[kSums] = {};
  float d_biases[kSums] = {};
  Sums team(places);
  const std::int64_t teams = static_cast<std::int64_t>(gridDim.x) * NormTeams<Share>::kInBlock;
  for (std::int64_t s = NormTeams<Share>::first(); s < all.count; s += teams) {
    const typename Share::Row row(x + all.x(s), width, thread);
    const typename Share::Row d_row(d_y + all.y(s), width, thread);
    const NormMoments m = all.moments<kRms>(statistics, s);
    float sum = 0;
    float dot = 0;
    Share::each(width, thread, [&](int p, int column) {
      const auto in = row.at(p, column);
      const auto d = d_row.at(p, column);
      const auto w = load_chunk<Share::kStep>(weight + column);
      SHARDWISE_UNROLL
      for (int i = 0; i < Share::kStep; ++i) {
        const float centred = widen(in.at[i]) - m.mean;
        const float g = widen(d.at[i]) * widen(w.at[i]);
        sum += g;
        dot += g * centred;
        if constexpr (kPartsHere) {
          d_weights[p * Share::kStep + i] += widen(d.at[i]) * centred * m.inverse;
          d_biases[p * Share::kStep + i] += widen(d.at[i]);
        }
      }
    });
    const float mean = kRms ? 0.0F : team.sum(sum) / n;
    const float along = team.sum(dot) * m.inverse * m.inverse / n;
    Share::each(width, thread, [&](int p, int column) {
      const auto in = row.at(p, column);
      const auto d = d_row.at(p, column);
      const auto w = load_chunk<Share::kStep>(weight + column);
      E* const place = d_x + all.x(s) + column;
      auto made = adds ? load_chunk<Share::kStep>(place) : d;
      SHARDWISE_UNROLL
      for (int i = 0; i < Share::kStep; ++i) {
        const float g = widen(d.at[i]) * widen(w.at[i]);
        const float own = (g - mean - (widen(in.at[i]) - m.mean) * along) * m.inverse;
        made.at[i] = narrow<E>(adds ? widen(made.at[i]) + own : own);
      }
      store_chunk(place, made);
    });
  }
  if (!kPartsHere || parts == nullptr) return;
  if constexpr (kPartsHere) {
    if constexpr (NormTeams<Share>::kInBlock > 1) {
      SHARDWISE_SHARED(float, weights_joined, Share::kMostWidth);
      join_teams<Share>(d_weights, weights_joined);
      if constexpr (!kRms) {
        SHARDWISE_SHARED(float, biases_joined, Share::kMostWidth);
        join_teams<Share>(d_biases, biases_joined);
      }
      if (NormTeams<Share>::in_block() < NormTeams<Share>::kInBlock - 1) return;
    }
    const std::int64_t all_parts = static_cast<std::int64_t>(gridDim.x) * width;
    float* const own = parts + static_cast<std::int64_t>(blockIdx.x) * width;
    Share::each(width, thread, [&](int p, int column) {
      Chunk<float, Share::kStep> sums;
      SHARDWISE_UNROLL
      for (int i = 0; i < Share::kStep; ++i) sums.at[i] = d_weights[p * Share::kStep + i];
      store_chunk(own + column, sums);
      if constexpr (!kRms) {
        SHARDWISE_UNROLL
        for (int i = 0; i < Share::kStep; ++i) sums.at[i] = d_biases[p * Share::kStep + i];
        store_chunk(own + all_parts + column, sums);
      }
    });
  }
}

// Rows of a block's threads, each a warp wide.
inline constexpr int kNormSlices = 8;
inline constexpr int kPartSlices = 16;

/// The parts of rows that no register holds: a column a thread, every parts-th segment.
template <bool kRms, class E>
__global__ void __launch_bounds__(kNormSlices* kWarp)
    norm_weight_parts(NormSegments all, const E* x, const float* statistics, const E* d_y,
                      float* parts, int count) {
  const int column = static_cast<int>(blockIdx.x * kWarp + threadIdx.x);
  const int part = static_cast<int>(blockIdx.y * kNormSlices + threadIdx.y);
  const int width = static_cast<int>(all.shape.width);
  if (column >= width) return;
  float d_weight = 0;
  float d_bias = 0;
  for (std::int64_t s = part; s < all.count; s += count) {
    const NormMoments m = all.moments<kRms>(statistics, s);
    const float d = widen(d_y[all.y(s) + column]);
    d_weight += d * (widen(x[all.x(s) + column]) - m.mean) * m.inverse;
    d_bias += d;
  }
  const std::int64_t at = static_cast<std::int64_t>(part) * width + column;
  parts[at] = d_weight;
  if (!kRms) parts[at + static_cast<std::int64_t>(count) * width] = d_bias;
}

/// Adds the sum of `count` parts to d_weight, and that of the next ones to d_bias.
template <class G>
__global__ void __launch_bounds__(kPartSlices* kWarp)
    add_norm_parts(const float* parts, int count, int width, G* d_weight, G* d_bias) {
  SHARDWISE_SHARED(float, slices, kPartSlices* kWarp);
  const int column = static_cast<int>(blockIdx.x * kWarp + threadIdx.x);
  const bool of_bias = blockIdx.y == 1;
  const float* const own = parts + (of_bias ? static_cast<std::int64_t>(count) * width : 0);
  float sum = 0;
  if (column < width) {
    for (int p = static_cast<int>(threadIdx.y); p < count; p += kPartSlices) {
      sum += own[static_cast<std::int64_t>(p) * width + column];
    }
  }
  slices[threadIdx.y * kWarp + threadIdx.x] = sum;
  __syncthreads();
  G* const to = of_bias ? d_bias : d_weight;
  if (threadIdx.y != 0 || column >= width || to == nullptr) return;
  for (int slice = 1; slice < kPartSlices; ++slice) sum += slices[slice * kWarp + threadIdx.x];
  to[column] = narrow<G>(widen(to[column]) + sum);
}

}  // namespace shardwise::exec::cuda
