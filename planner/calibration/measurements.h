#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/cost/kernels/compute.h"
#include "planner/spec/text/csv.h"

namespace shardwise {

// Measured times of kernels, from the tables that public projects keep. Columns that are not named
// here are passed over.

// Bounds of what the tables say: elements along a dimension, and milliseconds.
inline constexpr std::int64_t kMostMeasuredElements = std::int64_t{1} << 32;
inline constexpr double kLeastMeasuredMs = 1e-6;
inline constexpr double kMostMeasuredMs = 1e9;

/// The dtype that torch and others call `name`: "bfloat16", "half", "fp8".
std::optional<DType> dtype_called(std::string_view name);

struct GemmPoint {
  DType dtype = DType::bf16;
  std::int64_t groups = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  GemmOutput output = GemmOutput::written;
  Seconds time;
};

struct AttentionPoint {
  AttentionWork work;
  Pass pass = Pass::forward;
  bool copies_kv = false;  // K and V were also written to a cache
  Seconds time;
};

struct MovePoint {
  Bytes moved;
  Seconds time;
};

/// Columns dtype (bfloat16, float16, fp8 …; or gemm_dtype), m, n, k, latency_ms (or latency).
/// Source of the layout: ai-dynamo/aiconfigurator@095f58a51c4c, gemm_perf.
Result<std::vector<GemmPoint>> gemm_points(const CsvTable& table);

/// Attention in bf16, of two kinds of tables. Left out are rows of other dtypes, that failed, of
/// deterministic backward passes, with sequences or windows below 1024 or heads wider than 256.
///
/// Serving: columns batch_size, isl, num_heads, num_key_value_heads, head_dim, latency (ms), and
/// when there: window_size, attn_dtype, kv_cache_dtype. Causal forward passes, which also copy K
/// and V into a cache. Source of the layout: ai-dynamo/aiconfigurator@095f58a51c4c,
/// context_attention_perf.
/// Training: columns q_seqlen, kv_seqlen, num_q_heads, num_kv_heads, head_dim_qk, head_dim_vo,
/// attn_mask, data_type, profile_pass and time_ms, or fwd_time_ms and bwd_time_ms. Source of the
/// layout: NVIDIA/cudnn-frontend@3929da2ef4c1, benchmark/sdpa_benchmark_training/results.
Result<std::vector<AttentionPoint>> attention_points(const CsvTable& table);

/// Columns m, k, latency (ms): a kernel that reads [m, k] in bf16 and writes it in 8 bits.
/// Rows whose input fits twice into `cache` are left out: they never left it.
/// Source of the layout: ai-dynamo/aiconfigurator@095f58a51c4c, scale_matrix_perf.
Result<std::vector<MovePoint>> move_points(const CsvTable& table, Bytes cache);

/// The kernels of one system in a table of columns system, op, shape ("m=4096, n=…"), tflops.
/// Source of the layout: MooreThreads/SimuMax@4dcaae5, efficiency files.
struct OperatorPoints {
  std::vector<GemmPoint> gemm;
  std::vector<GemmPoint> grouped;
  std::vector<AttentionPoint> attention;
};
Result<OperatorPoints> operator_points(const CsvTable& table, const std::string& system);

}  // namespace shardwise
