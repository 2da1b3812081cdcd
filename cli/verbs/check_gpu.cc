#include "cli/verbs/check_gpu.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "cli/terminal.h"
#include "planner/calibration/fit_quality.h"
#include "planner/cost/kernels/attention_curve.h"
#include "planner/cost/kernels/compute.h"
#include "planner/cost/kernels/gemm_curve.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

class Check {
 public:
  void add(double predicted, Seconds measured) {
    signed_.push_back(predicted / measured.value() - 1);
    absolute_.push_back(std::abs(signed_.back()));
  }
  void print(Table& table, const std::string& curve) {
    if (signed_.empty()) return;
    const std::string points = format_count(static_cast<std::int64_t>(signed_.size()));
    const ErrorSummary errors = summarise(absolute_);
    const double bias = summarise(signed_).median;
    table.row({curve, points, format_percent(errors.median), format_percent(errors.p95),
               fmt::format("{:+.1f} %", bias * 100)});
  }

 private:
  std::vector<double> signed_;
  std::vector<double> absolute_;
};

void check_short_runs(Table& table, const GpuSpec& gpu, const std::vector<GemmPoint>& points) {
  for (const GemmCurve& curve : gpu.gemm) {
    Check check;
    for (const GemmPoint& p : points) {
      if (p.dtype != curve.dtype) continue;
      const GemmLimits limits = gemm_limits(gpu, curve.dtype, p.output);
      check.add(measured_gemm_seconds(curve, limits, {p.groups, p.m, p.n, p.k}), p.time);
    }
    check.print(table, fmt::format("gemm {}, short runs", name_of(curve.dtype)));
  }
}

void check_attention(Table& table, const GpuSpec& gpu, const std::vector<AttentionPoint>& points) {
  const AttentionLimits limits = attention_limits(gpu, DType::bf16);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const bool forward = pass == Pass::forward;
    const AttentionCurve& curve = forward ? gpu.attention_forward : gpu.attention_backward;
    Check check;
    for (const AttentionPoint& p : points) {
      if (p.pass != pass) continue;
      check.add(p.copies_kv ? measured_attention_seconds(curve, limits, p.work, pass)
                            : attention_seconds(curve, limits, p.work, pass),
                p.time);
    }
    check.print(table, forward ? "attention forward" : "attention backward");
  }
}

}  // namespace

void print_gpu_check(const GpuSpec& gpu, const std::vector<GemmPoint>& short_runs,
                     const OperatorPoints& operators, const std::vector<AttentionPoint>& attention,
                     const std::vector<MovePoint>& moves) {
  Table table(
      {{gpu.name, Align::left}, {"points"}, {"median error"}, {"95th percentile"}, {"bias"}});
  check_short_runs(table, gpu, short_runs);
  Check plain;
  for (const GemmPoint& p : operators.gemm) {
    plain.add(gemm_time(gpu, p.dtype, p.m, p.n, p.k, p.output).value(), p.time);
  }
  plain.print(table, "gemm bf16, long runs");
  Check grouped;
  for (const GemmPoint& p : operators.grouped) {
    const auto rows = static_cast<double>(p.m);
    grouped.add(grouped_gemm_time(gpu, p.dtype, p.groups, rows, p.n, p.k, p.output).value(),
                p.time);
  }
  grouped.print(table, "grouped gemm");
  check_attention(table, gpu, attention);
  check_attention(table, gpu, operators.attention);
  Check moved;
  for (const MovePoint& p : moves) moved.add(memory_bound_time(gpu, p.moved).value(), p.time);
  moved.print(table, "memory bound");
  fmt::print("{}", table.text(wants_colour()));
}

}  // namespace shardwise::cli
