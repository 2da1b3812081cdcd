#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/machine/dtype.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// How the efficiency numbers of a curve came about; printed with every report that uses them.
struct FitRecord {
  bool measured = false;  // false: a documented default of the architecture, no data for this GPU
  std::string fitted_on;  // data set and its commit
  std::string method;
  int points = 0;           // measured points, fit and left out together
  double median_error = 0;  // |predicted - measured| / measured on points left out of the fit
  double p95_error = 0;     // same, 95th percentile
  friend bool operator==(const FitRecord&, const FitRecord&) = default;
};

/// A block of the product that one processor of the GPU computes at a time.
struct GemmTile {
  std::int64_t rows = 128;
  std::int64_t columns = 256;
  double rate_share = 1;  // of the curve's rate, which is that of the best tile
  friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

/// GEMMs that were measured: every m with every n and every k, ascending.
struct MeasuredShapes {
  std::vector<std::int64_t> m;
  std::vector<std::int64_t> n;
  std::vector<std::int64_t> k;
  friend bool operator==(const MeasuredShapes&, const MeasuredShapes&) = default;
};

/// How the source of a curve measured, where that differs from training. Used to fit the curve and
/// left out of every prediction.
struct MeasuredWith {
  double slowdown = 0;     // long kernels run 1 + slowdown times longer, as power limits the clock
  Seconds slowdown_time;   // a kernel of this length shows half of the slowdown
  double extra_moves = 0;  // times the source also moves the first operand (to fp8), or K and V
  Seconds extra_start;     // of the kernels that do so
  friend bool operator==(const MeasuredWith&, const MeasuredWith&) = default;
};

/// Time of one GEMM as a function of its shape. docs/compute.md has the formula.
struct GemmCurve {
  DType dtype = DType::bf16;
  Seconds start;               // of a kernel: filling and draining the GPU
  double rate_share = 1;       // of the dense peak, reached inside a large tile's main loop
  Seconds epilogue;            // first loads and write-back of a tile of 128 x 256
  double wave_rounding = 1;    // share of the last, partly filled wave of tiles that is paid
  Seconds split;               // to divide the depth among processors, a tile of 128 x 256
  double bandwidth_share = 1;  // of the memory bandwidth
  std::vector<GemmTile> tiles;
  /// Speed of arithmetic in a long run, of that in the short measurement.
  double sustained_share = 1;
  bool sustained_measured = false;  // on this GPU, in a long run
  std::string sustained_source;
  std::vector<MeasuredShapes> shapes;  // what the curve was fitted to
  MeasuredWith measured_with;
  FitRecord fit;

  /// [m, k] x [k, n] itself was measured.
  bool measured(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// m, n and k each lie between the smallest and the largest that was measured.
  bool surrounds(std::int64_t m, std::int64_t n, std::int64_t k) const;
  friend bool operator==(const GemmCurve&, const GemmCurve&) = default;
};

/// Loss of many GEMMs in one kernel (routed experts) against one of the same size.
struct GroupedGemmCurve {
  double rate_share = 1;  // of the GEMM curve's rate
  Seconds group;          // more time for each group
  FitRecord fit;
  friend bool operator==(const GroupedGemmCurve&, const GroupedGemmCurve&) = default;
};

/// The rate that attention reaches for one head dimension.
struct HeadRate {
  std::int64_t head_dim = 128;
  double rate_share = 1;  // of the dense peak
  friend bool operator==(const HeadRate&, const HeadRate&) = default;
};

/// Time of fused attention. docs/compute.md has the formula.
struct AttentionCurve {
  Seconds start;
  Seconds block;                // first loads and write-back of one block of 128 queries
  double tail_share = 0;        // of the longest block's time, during which others are done
  double bandwidth_share = 1;   // of the memory bandwidth
  std::vector<HeadRate> rates;  // by head dimension, ascending
  MeasuredWith measured_with;
  FitRecord fit;
  friend bool operator==(const AttentionCurve&, const AttentionCurve&) = default;
};

/// Attention of a type that has kernels of its own.
struct AttentionOfType {
  DType dtype = DType::bf16;
  AttentionCurve forward;
  AttentionCurve backward;
  friend bool operator==(const AttentionOfType&, const AttentionOfType&) = default;
};

/// The rate of one kind of kernel that moves bytes.
struct MoveRate {
  MoveKind kind = MoveKind::copy;
  double forward_share = 1;   // of the memory bandwidth
  double backward_share = 1;  // of what has no backward pass, the same
  DType dtype = DType::fp32;  // of weights and activations
  friend bool operator==(const MoveRate&, const MoveRate&) = default;
};

/// Time of kernels that only move bytes.
struct MemoryBoundCurve {
  Seconds start;
  double bandwidth_share = 1;  // of the memory bandwidth
  std::vector<MoveRate>
      rates;  // of kinds that were measured apart; the others have the share above, and types that
              // a kind was not measured in the first rate of the kind
  FitRecord fit;
  friend bool operator==(const MemoryBoundCurve&, const MemoryBoundCurve&) = default;
};

/// One accelerator. Peaks are dense (no sparsity), bandwidths are 1e9 B/s per GB/s.
struct GpuSpec {
  std::string name;          // "h100-sxm"
  std::string label;         // "NVIDIA H100 SXM5 80 GB"
  std::string architecture;  // "hopper"; default curves are chosen by it
  std::string vendor;        // "nvidia", "amd", "cpu"
  int sm_count = 0;          // streaming multiprocessors, compute units; threads of a rank on a CPU
  /// Processors a rank of a CPU that ranks share, below 1 where there are more ranks. Every thread
  /// of a rank, those of its collectives too, has its part of them. 0 = an accelerator, or a CPU
  /// that was not measured: collectives run as on an accelerator.
  double cores_per_rank = 0;
  Bytes hbm_bytes;  // as the driver reports it to a program, before the context
  BytesPerSecond memory_bandwidth;
  std::vector<std::pair<DType, FlopsPerSecond>> peaks;
  double tdp_watts = 0;
  Seconds launch_latency;                // one kernel, host side, when the queue runs dry
  std::optional<double> price_per_hour;  // list price, US dollars a GPU-hour
  std::string price_date;                // when it was read, "2025-06"
  std::string price_source;
  std::vector<std::string> sources;  // of the figures above, "figure: source"
  std::vector<GemmCurve> gemm;       // one a dtype
  GroupedGemmCurve grouped_gemm;
  AttentionCurve attention_forward;
  AttentionCurve attention_backward;
  std::vector<AttentionOfType> attention_by_type;  // in place of both above
  MemoryBoundCurve memory_bound;

  /// Dense peak; zero when the GPU has no unit for `dtype`.
  FlopsPerSecond peak(DType dtype) const;
  /// The curve of `dtype`, or of the nearest dtype that has one: fp16 and bf16 stand for each
  /// other, fp8 for int8, fp6 and fp4, bf16 for the rest. nullptr when there is none at all.
  const GemmCurve* gemm_curve(DType dtype) const;
  const AttentionCurve& attention_curve(DType dtype, Pass pass) const;
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

}  // namespace shardwise
