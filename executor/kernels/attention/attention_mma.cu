#include "executor/kernels/cuda/device_code/attention_mma.h"

#include "executor/kernels/cuda/device_code/attention_mma_tiles.h"

namespace shardwise::exec::cuda {
namespace {

/// A block's tile: 32 queries a warp, so that a fragment of keys read from shared memory is
/// multiplied twice.
template <int kDim>
struct ForwardTiles {
  static constexpr int kTiles = 2;
  static constexpr int kBlocks = 2;  // of a multiprocessor, by registers
  using Queries = RowTile<16 * kTiles * kTileWarps, kDim>;
  using Keys = RowTile<kDim >= 96 ? 32 : 64, kDim>;
  static constexpr int kSharedBytes = 2 * (Queries::kElements + TilePairs<Keys>::kElements);
  static_assert(kSharedBytes <= kMostSharedBytes);
};

/// The running softmax of a warp's rows. A quad of lanes has a row.
template <int kTiles>
struct RunningSoftmax {
  float highest[kTiles][2];  // score, before it is scaled
  float sum[kTiles][2];      // of the lane's columns

  __device__ RunningSoftmax() {
    SHARDWISE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      for (int half = 0; half < 2; ++half) {
        highest[t][half] = -INFINITY;
        sum[t][half] = 0;
      }
    }
  }

  /// Makes p of scores, and scales what was summed before to the new maximum.
  /// \param factor  of scores, for powers of two
  template <class Scores, class Sums>
  __device__ void add(Scores& scores, float factor, Sums& sums) {
    SHARDWISE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      SHARDWISE_UNROLL
      for (int half = 0; half < 2; ++half) {
        float now = highest[t][half];
        SHARDWISE_UNROLL
        for (int n = 0; n < Scores::kParts; ++n) {
          now =
              fmaxf(now, fmaxf(scores.part[t][n].at[2 * half], scores.part[t][n].at[2 * half + 1]));
        }
        now = fmaxf(now, __shfl_xor_sync(kWholeWarp, now, 1));
        now = fmaxf(now, __shfl_xor_sync(kWholeWarp, now, 2));
        // A row that has seen no key yet: all its p are 0.
        const float base = now == -INFINITY ? 0.0F : now * factor;
        const float before = power_of_two(highest[t][half] * factor - base);
        highest[t][half] = now;
        float all = sum[t][half] * before;
        SHARDWISE_UNROLL
        for (int n = 0; n < Sums::kParts; ++n) {
          sums.part[t][n].at[2 * half] *= before;
          sums.part[t][n].at[2 * half + 1] *= before;
        }
        SHARDWISE_UNROLL
        for (int n = 0; n < Scores::kParts; ++n) {
          SHARDWISE_UNROLL
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& score = scores.part[t][n].at[i];
            score = power_of_two(score * factor - base);
            all += score;
          }
        }
        sum[t][half] = all;
      }
    }
  }

  /// The softmax's sum of the lane's row.
  __device__ float whole_sum(int t, int half) const {
    const float pair = sum[t][half] + __shfl_xor_sync(kWholeWarp, sum[t][half], 1);
    return pair + __shfl_xor_sync(kWholeWarp, pair, 2);
  }
};

/// A tile of queries of a head a block. Blocks that begin first have the last queries, which see
/// most.
template <int kDim>
__global__ void __launch_bounds__(kTileThreads, ForwardTiles<kDim>::kBlocks)
    attend_mma(HeadPlaces at, const Bf16* qkv, Bf16* out, float* log_sums) {
  using Tiles = ForwardTiles<kDim>;
  using Queries = typename Tiles::Queries;
  using Keys = typename Tiles::Keys;
  constexpr int kTiles = Tiles::kTiles;
  SHARDWISE_DYNAMIC_SHARED(Bf16, queries);
  const TilePairs<Keys> pairs(queries + Queries::kElements);
  const AttentionShape& s = at.shape;
  const TileOfHead tile(s, s.heads, Queries::kRows, /*from_last=*/true);
  const SeenKeys seen(s);
  const KeysOfHead<Keys> keys(at, tile, qkv);
  const int row = warp_of_block() * 16 * kTiles;  // of the warp, in the tile
  const int query = tile.first + row;
  const int end = tile.first + tile.rows;
  int key = seen.first_key(tile.first, Keys::kRows);
  Queries::copy(qkv + at.qkv(tile.batch, tile.first, tile.head), keys.width, tile.rows, queries);
  keys.copy(key, pairs, 0);
  WarpSums<kTiles, kDim> sums;
  RunningSoftmax<kTiles> softmax;
  for (int turn = 0; key < end; key += Keys::kRows, turn ^= 1) {
    wait_for_copies();
    __syncthreads();  // this tile is there, and nobody reads the other any more
    if (key + Keys::kRows < end) keys.copy(key + Keys::kRows, pairs, turn ^ 1);
    if (!seen.sees_any(query, 16 * kTiles, key, Keys::kRows)) continue;
    WarpSums<kTiles, Keys::kRows> scores;
    add_products_of_rows<Queries, Keys>(queries, row, pairs.first(turn), scores);
    if (!seen.sees_all(query, 16 * kTiles, key, Keys::kRows)) {
      each_of(scores, [&](int t, int n, int i) {
        if (!seen.sees(query + scores.row(t, i / 2), key + scores.column(n) + i % 2)) {
          scores.part[t][n].at[i] = -INFINITY;
        }
      });
    }
    softmax.add(scores, at.scale * kLog2E, sums);
    add_products<Keys>(scores, pairs.second(turn), sums);
  }
  SHARDWISE_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    SHARDWISE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float all = softmax.whole_sum(t, half);
      const float part = reciprocal(all);
      SHARDWISE_UNROLL
      for (int n = 0; n < sums.kParts; ++n) {
        sums.part[t][n].at[2 * half] *= part;
        sums.part[t][n].at[2 * half + 1] *= part;
      }
      const int own = row + sums.row(t, half);
      if (own < tile.rows && lane_of_warp() % 4 == 0) {
        log_sums[at.number(tile.batch, tile.head, tile.first + own)] =
            softmax.highest[t][half] * at.scale + logf(all);
      }
    }
  }
  __syncwarp();  // all lanes have read the warp's rows
  store_rows<Queries>(sums, queries, row, out + at.out(tile.batch, tile.first, tile.head),
                      static_cast<int>(s.heads) * kDim, tile.rows);
}

}  // namespace

bool takes_tensor_cores(const AttentionShape& s, const Bf16* qkv, const Bf16* out) {
  const bool has_kernel =
      s.head_dim == 64 || s.head_dim == 80 || s.head_dim == 96 || s.head_dim == 128;
  return has_kernel && takes_vectors(qkv) && takes_vectors(out);
}

void attention_forward_mma(const AttentionShape& s, const Bf16* qkv, Bf16* out, float* log_sums,
                           cudaStream_t stream) {
  with_head_dim(s.head_dim, [&]<int kDim>() {
    using Tiles = ForwardTiles<kDim>;
    const std::int64_t tiles = pieces(s.sequence, Tiles::Queries::kRows);
    const auto blocks = static_cast<unsigned>(s.batch * s.heads * tiles);
    launch_with_shared(stream, "attention", dim3(blocks), dim3(kTileThreads), Tiles::kSharedBytes,
                       attend_mma<kDim>, HeadPlaces{s, scale_of(s)}, qkv, out, log_sums);
  });
}

}  // namespace shardwise::exec::cuda
