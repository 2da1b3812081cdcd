#pragma once

#include <numeric>

#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/cuda/device_code/tensor_cores.h"

namespace shardwise::exec::cuda {

inline constexpr int kTileWarps = 4;  // of a block
inline constexpr int kTileThreads = kTileWarps * kWarp;

inline __device__ int lane_of_warp() { return static_cast<int>(threadIdx.x % kWarp); }
/// Lane, and what is made of it is made where it stands: nvcc would keep it in registers.
inline __device__ int lane_here() {
  int lane = lane_of_warp();
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(lane));
#endif
  return lane;
}
inline __device__ int warp_of_block() { return static_cast<int>(threadIdx.x / kWarp); }

/// Rows of kDim bf16 in shared memory, in chunks of 16 bytes. 8 chunks are all banks; the chunks of
/// a row change places so that one column of 8 rows, which is what ldmatrix reads at once, is in 8
/// of them.
/// \tparam kDim  a multiple of 16
template <int kRowCount, int kDim>
struct RowTile {
  static constexpr int kRows = kRowCount;
  static constexpr int kWidth = kDim;
  static constexpr int kStep = Vector<Bf16>::kCount;
  static constexpr int kChunks = kDim / kStep;
  static constexpr int kElements = kRows * kDim;
  static_assert(kDim % 16 == 0 && kRows % 16 == 0);
  // Rows of which one column has kSame places among 8, the others being those of rows in between.
  static constexpr int kSame = std::gcd(kChunks, 8);
  static constexpr int kOther = 8 / kSame;

  /// The place of a chunk.
  static __device__ int at(int row, int chunk) {
    return (row * kChunks + (chunk ^ (row / kOther % kSame))) * kStep;
  }

  /// Begins to copy `rows` rows, zeros behind them. All threads of the block call it.
  /// \pre rows > 0
  static __device__ void copy(const Bf16* first, int stride, int rows, Bf16* tile) {
    constexpr int kAll = kRows * kChunks;
    SHARDWISE_NO_UNROLL  // registers
        for (unsigned n = threadIdx.x; n < kAll; n += kTileThreads) {
      const auto row = static_cast<int>(n / kChunks);
      const auto chunk = static_cast<int>(n % kChunks);
      const bool is_there = row < rows;
      copy_async<16>(tile + at(row, chunk), first + (is_there ? row * stride : 0) + chunk * kStep,
                     is_there);
    }
  }
};

/// Where a lane reads matrices of a tile for load_matrices(), each 8 rows of a column of chunks.
template <class Tile>
class MatrixPlaces {
 public:
  // Chunks 2 kPlaces apart are that far apart in memory too.
  static constexpr int kPlaces = Tile::kSame / 2;

  /// \param row  of the lane in matrices at (0, 0)  \param chunk  likewise: 0 or 1
  __device__ MatrixPlaces(const Bf16* tile, int row, int chunk) {
    SHARDWISE_UNROLL
    for (int p = 0; p < kPlaces; ++p) place_[p] = tile + Tile::at(row, 2 * p + chunk);
  }
  /// \param row  the first, a multiple of 8  \param pair  of chunks, whose place in memory is known
  /// when it is compiled: `turn` kPlaces + `place`
  __device__ const Bf16* at(int row, int turn, int place) const {
    return place_[place] + row * Tile::kWidth + turn * 2 * kPlaces * Tile::kStep;
  }

 private:
  const Bf16* place_[kPlaces];
};

/// Part of a product that a warp has: 16 kTiles rows, kColumns columns.
template <int kTiles, int kColumns>
struct WarpSums {
  static constexpr int kRows = 16 * kTiles;
  static constexpr int kParts = kColumns / 8;
  SumFragment part[kTiles][kParts] = {};

  /// The lane's rows of tile t, of the two halves of a fragment, counted from the warp's first.
  static __device__ int row(int t, int half) { return 16 * t + 8 * half + lane_of_warp() / 4; }
  /// The first of the lane's two columns of part n.
  static __device__ int column(int n) { return 8 * n + 2 * (lane_of_warp() % 4); }
};

/// Calls f(tile, part, element) for what the lane has of them.
template <int kTiles, int kColumns, class F>
__device__ void each_of(const WarpSums<kTiles, kColumns>& /*sums*/, F f) {
  SHARDWISE_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    SHARDWISE_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      SHARDWISE_UNROLL
      for (int i = 0; i < 4; ++i) f(t, n, i);
    }
  }
}

/// sums += a b^T, of the warp's rows of `a` from `row` on and all rows of `b`.
template <class A, class B, int kTiles>
__device__ void add_products_of_rows(const Bf16* a, int row, const Bf16* b,
                                     WarpSums<kTiles, B::kRows>& sums) {
  const int lane = lane_here();
  const MatrixPlaces<A> left_places(a, row + lane % 16, lane / 16);
  const MatrixPlaces<B> right_places(b, lane % 8 + lane / 16 * 8, lane / 8 % 2);
  constexpr int kPlaces = MatrixPlaces<A>::kPlaces;
  static_assert(A::kWidth == B::kWidth);
  SHARDWISE_NO_UNROLL  // registers
      for (int turn = 0; turn < A::kWidth / 16 / kPlaces; ++turn) {
    SHARDWISE_UNROLL
    for (int place = 0; place < kPlaces; ++place) {
      LeftFragment left[kTiles];
      SHARDWISE_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        load_matrices<false>(left_places.at(16 * t, turn, place), left[t].at);
      }
      SHARDWISE_UNROLL
      for (int n = 0; n < B::kRows / 16; ++n) {
        RightFragments right;
        load_matrices<false>(right_places.at(16 * n, turn, place), right.at);
        SHARDWISE_UNROLL
        for (int t = 0; t < kTiles; ++t) {
          multiply(left[t], right, 0, sums.part[t][2 * n]);
          multiply(left[t], right, 1, sums.part[t][2 * n + 1]);
        }
      }
    }
  }
}

/// sums += factors b, the factors rounded to bf16: [16 kTiles, rows of b] of the warp.
template <class B, int kTiles>
__device__ void add_products(const WarpSums<kTiles, B::kRows>& factors, const Bf16* b,
                             WarpSums<kTiles, B::kWidth>& sums) {
  const int lane = lane_here();
  const MatrixPlaces<B> places(b, lane % 16, lane / 16);
  constexpr int kPlaces = MatrixPlaces<B>::kPlaces;
  SHARDWISE_UNROLL
  for (int k = 0; k < B::kRows / 16; ++k) {
    LeftFragment left[kTiles];
    SHARDWISE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const float* const low = factors.part[t][2 * k].at;
      const float* const high = factors.part[t][2 * k + 1].at;
      left[t] = {{pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]),
                  pack(high[2], high[3])}};
    }
    SHARDWISE_UNROLL
    for (int n = 0; n < B::kWidth / 16; ++n) {
      RightFragments right;
      load_matrices<true>(places.at(16 * k, n / kPlaces, n % kPlaces), right.at);
      SHARDWISE_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        multiply(left[t], right, 0, sums.part[t][2 * n]);
        multiply(left[t], right, 1, sums.part[t][2 * n + 1]);
      }
    }
  }
}

/// Stores the warp's sums in bf16 by way of its own rows of `tile`, from `row` on. `rows` of the
/// tile's are stored, the first at `to`. \pre nobody reads or writes the warp's rows any more
template <class Tile, int kTiles>
__device__ void store_rows(const WarpSums<kTiles, Tile::kWidth>& sums, Bf16* tile, int row,
                           Bf16* to, int stride, int rows) {
  using Sums = WarpSums<kTiles, Tile::kWidth>;
  SHARDWISE_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    SHARDWISE_UNROLL
    for (int n = 0; n < Sums::kParts; ++n) {
      SHARDWISE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float* const pair = sums.part[t][n].at + 2 * half;
        store_chunk(tile + Tile::at(row + Sums::row(t, half), n) + Sums::column(0),
                    Chunk<Bf16, 2>{{narrow<Bf16>(pair[0]), narrow<Bf16>(pair[1])}});
      }
    }
  }
  __syncwarp();
  SHARDWISE_NO_UNROLL  // registers
      for (int i = 0; i < Sums::kRows * Tile::kChunks / kWarp; ++i) {
    const int n = lane_of_warp() + i * kWarp;
    const int own = row + n / Tile::kChunks;
    const int chunk = n % Tile::kChunks;
    if (own < rows) {
      store(to + own * stride + chunk * Tile::kStep, load(tile + Tile::at(own, chunk)));
    }
  }
}

}  // namespace shardwise::exec::cuda
