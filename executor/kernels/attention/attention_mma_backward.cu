#include "executor/kernels/cuda/device_code/attention_mma.h"
#include "executor/kernels/cuda/device_code/attention_mma_tiles.h"

namespace shardwise::exec::cuda {
namespace {

/// A block's tile of queries and its tiles of keys, for the gradients of queries.
template <int kDim>
struct QueryGradientTiles {
  static constexpr int kTiles = kDim == 128 ? 1 : 2;  // by registers
  static constexpr int kBlocks = 2;                   // of a multiprocessor, by registers
  using Queries = RowTile<16 * kTiles * kTileWarps, kDim>;
  using Keys = RowTile<32, kDim>;
  static constexpr int kSharedBytes = 2 * (2 * Queries::kElements + TilePairs<Keys>::kElements);
  static_assert(kSharedBytes <= kMostSharedBytes);
};

/// A block's tile of keys and its tiles of queries, for the gradients of keys and values.
template <int kDim>
struct KeyGradientTiles {
  static constexpr int kTiles = 1;  // by registers
  static constexpr int kBlocks = 2;
  using Keys = RowTile<16 * kTiles * kTileWarps, kDim>;
  using Queries = RowTile<kDim >= 96 ? 32 : 64, kDim>;
  // A logarithm of a sum and a delta a query, by turns.
  static constexpr int kNumbers = 2 * 2 * Queries::kRows;
  static constexpr int kSharedBytes =
      2 * (2 * Keys::kElements + TilePairs<Queries>::kElements) + 4 * kNumbers;
  static_assert(kSharedBytes <= kMostSharedBytes);
};

/// Gradients of a tile of queries of a head, to [batch, heads, sequence, kDim].
template <int kDim>
__global__ void __launch_bounds__(kTileThreads, QueryGradientTiles<kDim>::kBlocks)
    query_gradients_mma(HeadPlaces at, const Bf16* qkv, const float* log_sums, const Bf16* d_out,
                        const float* deltas, Bf16* d_queries) {
  using Tiles = QueryGradientTiles<kDim>;
  using Queries = typename Tiles::Queries;
  using Keys = typename Tiles::Keys;
  constexpr int kTiles = Tiles::kTiles;
  SHARDWISE_DYNAMIC_SHARED(Bf16, queries);
  Bf16* const d_outs = queries + Queries::kElements;
  const TilePairs<Keys> pairs(d_outs + Queries::kElements);
  const AttentionShape& s = at.shape;
  const TileOfHead tile(s, s.heads, Queries::kRows, /*from_last=*/true);
  const SeenKeys seen(s);
  const KeysOfHead<Keys> keys(at, tile, qkv);
  const int row = warp_of_block() * 16 * kTiles;  // of the warp, in the tile
  const int query = tile.first + row;
  const int end = tile.first + tile.rows;
  int key = seen.first_key(tile.first, Keys::kRows);
  Queries::copy(qkv + at.qkv(tile.batch, tile.first, tile.head), keys.width, tile.rows, queries);
  Queries::copy(d_out + at.out(tile.batch, tile.first, tile.head), static_cast<int>(s.heads) * kDim,
                tile.rows, d_outs);
  keys.copy(key, pairs, 0);
  const float factor = at.scale * kLog2E;  // of scores, for powers of two
  WarpSums<kTiles, kDim> sums;
  float log_sum[kTiles][2];
  float delta[kTiles][2];
  SHARDWISE_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    SHARDWISE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int own = row + sums.row(t, half);
      const std::int64_t n = at.number(tile.batch, tile.head, tile.first + own);
      log_sum[t][half] = own < tile.rows ? log_sums[n] * kLog2E : 0.0F;
      delta[t][half] = own < tile.rows ? deltas[n] : 0.0F;
    }
  }
  for (int turn = 0; key < end; key += Keys::kRows, turn ^= 1) {
    wait_for_copies();
    __syncthreads();  // this tile is there, and nobody reads the other any more
    if (key + Keys::kRows < end) keys.copy(key + Keys::kRows, pairs, turn ^ 1);
    if (!seen.sees_any(query, 16 * kTiles, key, Keys::kRows)) continue;
    const bool sees_all = seen.sees_all(query, 16 * kTiles, key, Keys::kRows);
    WarpSums<kTiles, Keys::kRows> parts;
    add_products_of_rows<Queries, Keys>(queries, row, pairs.first(turn), parts);
    each_of(parts, [&](int t, int n, int i) {
      const bool sees =
          sees_all || seen.sees(query + parts.row(t, i / 2), key + parts.column(n) + i % 2);
      float& part = parts.part[t][n].at[i];
      part = sees ? power_of_two(part * factor - log_sum[t][i / 2]) : 0.0F;
    });
    WarpSums<kTiles, Keys::kRows> d_scores;
    add_products_of_rows<Queries, Keys>(d_outs, row, pairs.second(turn), d_scores);
    each_of(d_scores, [&](int t, int n, int i) {
      float& d_score = d_scores.part[t][n].at[i];
      d_score = parts.part[t][n].at[i] * (d_score - delta[t][i / 2]);
    });
    add_products<Keys>(d_scores, pairs.first(turn), sums);
  }
  each_of(sums, [&](int t, int n, int i) { sums.part[t][n].at[i] *= at.scale; });
  __syncwarp();  // all lanes have read the warp's rows
  store_rows<Queries>(sums, queries, row,
                      d_queries + at.number(tile.batch, tile.head, tile.first) * kDim, kDim,
                      tile.rows);
}

/// Gradients of a tile of keys and values, of all heads that read them, in their places: no other
/// block reads those. Scores are transposed: a warp has rows of keys, a column is a query.
template <int kDim>
__global__ void __launch_bounds__(kTileThreads, KeyGradientTiles<kDim>::kBlocks)
    key_gradients_mma(HeadPlaces at, Bf16* qkv, const float* log_sums, const Bf16* d_out,
                      const float* deltas) {
  using Tiles = KeyGradientTiles<kDim>;
  using Queries = typename Tiles::Queries;
  using Keys = typename Tiles::Keys;
  constexpr int kTiles = Tiles::kTiles;
  SHARDWISE_DYNAMIC_SHARED(Bf16, keys);
  Bf16* const values = keys + Keys::kElements;
  const TilePairs<Queries> pairs(values + Keys::kElements);
  auto* const numbers = reinterpret_cast<float*>(pairs.first(2));
  const AttentionShape& s = at.shape;
  const TileOfHead tile(s, s.kv_heads, Keys::kRows, /*from_last=*/false);
  const SeenKeys seen(s);
  const auto width = static_cast<int>(at.width());
  Bf16* const k_rows = qkv + at.qkv(tile.batch, tile.first, s.heads + tile.head);
  Bf16* const v_rows = k_rows + s.kv_heads * kDim;
  const int group = group_of(s);
  const auto sequence = static_cast<int>(s.sequence);
  const int end = seen.queries_end(tile.first + tile.rows, sequence);
  const int tiles = (end - tile.first + Queries::kRows - 1) / Queries::kRows;  // of queries
  // The n-th tile of all heads' queries, one head after the other.
  const auto load = [&](int n, int turn) {
    const std::int64_t head = tile.head * group + n / tiles;
    const int query = tile.first + n % tiles * Queries::kRows;
    Queries::copy(qkv + at.qkv(tile.batch, query, head), width, sequence - query,
                  pairs.first(turn));
    Queries::copy(d_out + at.out(tile.batch, query, head), static_cast<int>(s.heads) * kDim,
                  sequence - query, pairs.second(turn));
    static_assert(2 * Queries::kRows <= kTileThreads);
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread >= 2 * Queries::kRows) return;
    const bool is_there = query + thread % Queries::kRows < sequence;
    const float* const from = thread < Queries::kRows ? log_sums : deltas;
    copy_async<4>(
        numbers + 2 * turn * Queries::kRows + thread,
        from + at.number(tile.batch, head, is_there ? query + thread % Queries::kRows : 0),
        is_there);
  };
  const int row = warp_of_block() * 16 * kTiles;  // of the warp, in the tile
  const int key = tile.first + row;
  Keys::copy(k_rows, width, tile.rows, keys);
  Keys::copy(v_rows, width, tile.rows, values);
  load(0, 0);
  const float factor = at.scale * kLog2E;
  WarpSums<kTiles, kDim> d_keys;
  WarpSums<kTiles, kDim> d_values;
  for (int n = 0, turn = 0; n < group * tiles; ++n, turn ^= 1) {
    wait_for_copies();
    __syncthreads();  // this tile is there, and nobody reads the other any more
    if (n + 1 < group * tiles) load(n + 1, turn ^ 1);
    const int query = tile.first + n % tiles * Queries::kRows;
    if (!seen.sees_any(query, Queries::kRows, key, 16 * kTiles)) continue;
    const bool sees_all = seen.sees_all(query, Queries::kRows, key, 16 * kTiles);
    const float* const log_sum = numbers + 2 * turn * Queries::kRows;
    const float* const delta = log_sum + Queries::kRows;
    WarpSums<kTiles, Queries::kRows> parts;
    add_products_of_rows<Keys, Queries>(keys, row, pairs.first(turn), parts);
    each_of(parts, [&](int t, int c, int i) {
      const int column = parts.column(c) + i % 2;
      const bool sees = sees_all || seen.sees(query + column, key + parts.row(t, i / 2));
      float& part = parts.part[t][c].at[i];
      part = sees ? power_of_two(part * factor - log_sum[column] * kLog2E) : 0.0F;
    });
    WarpSums<kTiles, Queries::kRows> d_scores;
    add_products_of_rows<Keys, Queries>(values, row, pairs.second(turn), d_scores);
    each_of(d_scores, [&](int t, int c, int i) {
      float& d_score = d_scores.part[t][c].at[i];
      d_score = parts.part[t][c].at[i] * (d_score - delta[parts.column(c) + i % 2]);
    });
    add_products<Queries>(parts, pairs.second(turn), d_values);
    add_products<Queries>(d_scores, pairs.first(turn), d_keys);
  }
  each_of(d_keys, [&](int t, int n, int i) { d_keys.part[t][n].at[i] *= at.scale; });
  __syncwarp();  // all lanes have read the warp's rows
  store_rows<Keys>(d_keys, keys, row, k_rows, width, tile.rows);
  store_rows<Keys>(d_values, values, row, v_rows, width, tile.rows);
}

/// d_queries [batch, heads, sequence, head_dim] to their places in qkv.
__global__ void __launch_bounds__(kChunkThreads)
    place_query_gradients(HeadPlaces at, const Bf16* d_queries, Bf16* qkv) {
  const AttentionShape& s = at.shape;
  const std::int64_t n = chunk_of_thread() * Vector<Bf16>::kCount;
  const std::int64_t row = n / s.head_dim;
  if (row >= s.batch * s.heads * s.sequence) return;
  const std::int64_t head = row / s.sequence % s.heads;
  const std::int64_t batch = row / s.sequence / s.heads;
  store(qkv + at.qkv(batch, row % s.sequence, head) + n % s.head_dim, load(d_queries + n));
}

}  // namespace

void attention_backward_mma(const AttentionShape& s, Bf16* qkv, const float* log_sums,
                            const Bf16* d_out, const float* deltas, Bf16* d_queries,
                            cudaStream_t stream) {
  const HeadPlaces places = {s, scale_of(s)};
  with_head_dim(s.head_dim, [&]<int kDim>() {
    using ByQueries = QueryGradientTiles<kDim>;
    const std::int64_t query_tiles = pieces(s.sequence, ByQueries::Queries::kRows);
    launch_with_shared(stream, "attention query gradients",
                       dim3(static_cast<unsigned>(s.batch * s.heads * query_tiles)),
                       dim3(kTileThreads), ByQueries::kSharedBytes, query_gradients_mma<kDim>,
                       places, qkv, log_sums, d_out, deltas, d_queries);
    using ByKeys = KeyGradientTiles<kDim>;
    const std::int64_t key_tiles = pieces(s.sequence, ByKeys::Keys::kRows);
    launch_with_shared(stream, "attention key gradients",
                       dim3(static_cast<unsigned>(s.batch * s.kv_heads * key_tiles)),
                       dim3(kTileThreads), ByKeys::kSharedBytes, key_gradients_mma<kDim>, places,
                       qkv, log_sums, d_out, deltas);
  });
  const std::int64_t chunks = s.batch * s.heads * s.sequence * s.head_dim / Vector<Bf16>::kCount;
  launch(stream, "attention query gradients, stored", chunk_blocks(chunks), dim3(kChunkThreads),
         place_query_gradients, places, d_queries, qkv);
}

}  // namespace shardwise::exec::cuda
