#include "executor/calibrate/fit_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "planner/calibration/fit_attention.h"
#include "planner/calibration/fit_gemm.h"
#include "planner/calibration/fit_quality.h"
#include "planner/spec/plan/names.h"

namespace shardwise::exec {
namespace {

constexpr double kGiga = 1e9;

double flops_of(const GemmPoint& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

constexpr DType kTypes[] = {DType::fp32, DType::bf16};

std::vector<GemmPoint> products_in(const Measurements& measured, DType dtype) {
  std::vector<GemmPoint> points;
  std::ranges::copy_if(measured.products, std::back_inserter(points),
                       [&](const GemmPoint& p) { return p.dtype == dtype; });
  return points;
}

double best_gemm(const std::vector<GemmPoint>& points) {
  double best = 0;
  for (const GemmPoint& p : points) best = std::max(best, flops_of(p) / p.time.value());
  return best;
}

/// Bytes a second: no kernel moves more, in a cache or out of it.
double best_move(const Measurements& measured) {
  double best = 0;
  const auto add = [&](const MovePoint& p) {
    best = std::max(best, static_cast<double>(p.moved.value()) / p.time.value());
  };
  for (const MovePoint& p : measured.copies) add(p);
  for (const KindPoint& p : measured.kinds) add(p.point);
  return best;
}

/// The rate of each kind and pass: the median over what was timed of it.
void fit_rates(const Measurements& measured, GpuSpec& gpu, std::vector<Residual>& residuals) {
  std::map<std::tuple<DType, MoveKind, Pass>, std::vector<MovePoint>> groups;
  for (const KindPoint& p : measured.kinds) groups[{p.dtype, p.kind, p.pass}].push_back(p.point);
  MemoryBoundCurve& curve = gpu.memory_bound;
  const double bandwidth = gpu.memory_bandwidth.value();
  for (const auto& [key, points] : groups) {
    const auto [dtype, kind, pass] = key;
    std::vector<double> shares;
    for (const MovePoint& p : points) {
      const double moving = std::max(0.1 * p.time.value(), p.time.value() - curve.start.value());
      shares.push_back(static_cast<double>(p.moved.value()) / bandwidth / moving);
    }
    const double share = std::clamp(rounded_coefficient(summarise(shares).median), 1e-6, 1.0);
    // Forward comes first, and stands for a backward pass that there is not.
    if (pass == Pass::forward) {
      curve.rates.push_back({kind, share, share, dtype});
    } else {
      curve.rates.back().backward_share = share;
    }
    std::vector<double> errors;
    for (const MovePoint& p : points) {
      const Seconds predicted = memory_bound_time(gpu, p.moved, kind, pass, dtype);
      errors.push_back(std::abs(predicted / p.time - 1));
    }
    const ErrorSummary error = summarise(std::move(errors));
    residuals.push_back(
        {fmt::format("{} {} {}", name_of(kind), pass == Pass::forward ? "forward" : "backward",
                     name_of(dtype)),
         static_cast<int>(points.size()), error.median, error.p95,
         fmt::format("{:.3g} GB/s", share * bandwidth / kGiga)});
  }
}

Residual residual_of(const std::string& curve, const FitRecord& fit, double rate,
                     const char* unit) {
  return {curve, fit.points, fit.median_error, fit.p95_error,
          fmt::format("{:.3g} {}", rate / kGiga, unit)};
}

/// Products and attention in one type. Those in fp32 stand for types that were not measured.
void fit_products(DType dtype, const Measurements& measured, const std::string& method,
                  FittedMachine& fitted) {
  GpuSpec& gpu = fitted.cluster.gpu;
  const std::vector<GemmPoint> products = products_in(measured, dtype);
  if (products.empty()) return;
  const double peak = gpu.peak(dtype).value();
  const auto in_type = [&](const char* what) { return fmt::format("{} {}", what, name_of(dtype)); };
  gpu.gemm.push_back(fit_gemm(gpu, dtype, products, method));
  fitted.residuals.push_back(
      residual_of(in_type("products"), gpu.gemm.back().fit, best_gemm(products), "GFLOP/s"));
  std::vector<AttentionPoint> points;
  for (const TypedAttention& each : measured.attention) {
    if (each.dtype == dtype) points.push_back(each.point);
  }
  AttentionOfType own = {dtype, fit_attention(gpu, Pass::forward, points, method, dtype),
                         fit_attention(gpu, Pass::backward, points, method, dtype)};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const AttentionCurve& curve = pass == Pass::forward ? own.forward : own.backward;
    double best = 0;
    for (const HeadRate& rate : curve.rates) best = std::max(best, rate.rate_share * peak);
    const char* name = pass == Pass::forward ? "attention forward" : "attention backward";
    fitted.residuals.push_back(residual_of(in_type(name), curve.fit, best, "GFLOP/s"));
  }
  if (dtype == DType::fp32) {
    gpu.attention_forward = std::move(own.forward);
    gpu.attention_backward = std::move(own.backward);
  } else {
    gpu.attention_by_type.push_back(std::move(own));
  }
}

void describe(const Machine& machine, const RanksOnMachine& ranks, const std::string& method,
              GpuSpec& gpu) {
  gpu.name = "cpu-rank";
  gpu.label = fmt::format("one of {} ranks on {} of {}", ranks.ranks,
                          machine.cores == 1 ? "a core" : fmt::format("{} cores", machine.cores),
                          machine.processor.empty() ? "a CPU" : machine.processor);
  gpu.architecture = "cpu";
  gpu.vendor = "cpu";
  gpu.sm_count = ranks.threads;
  gpu.cores_per_rank = static_cast<double>(machine.cores) / ranks.ranks;
  gpu.hbm_bytes = Bytes(machine.memory.value() / ranks.ranks);
  const std::string measured = fmt::format("measured by {}", method);
  gpu.sources = {
      fmt::format("sm_count: {} threads compute, a rank (--threads)", ranks.threads),
      "hbm_bytes: the memory of the machine over its ranks",
      fmt::format("memory_bandwidth_gb_per_s: best of all kernels that move bytes, {}", measured),
      fmt::format("peak_tflops: best product of either type, both computed in fp32 by {}, {}",
                  machine.products, measured),
      "tdp_watts: not measured",
      fmt::format("launch_latency_us: an operation that another stream waits for, {}", measured)};
}

/// Ranks copy from one another's memory: one tier, each rank with its share of it.
void fit_links(const RanksOnMachine& ranks, const std::string& method, const Measurements& measured,
               ClusterSpec& cluster, std::vector<Residual>& residuals) {
  LinkTier tier;
  tier.name = "memory";
  tier.domain_size = std::max(1, ranks.ranks);
  tier.latency = Seconds(1e-6);
  tier.source = fmt::format("best collective between {} ranks ({}), {}", ranks.ranks,
                            ranks.communicator, method);
  double best = 1e9;
  for (const GroupPoint& p : measured.collectives) {
    const double passes = p.kind == CollectiveKind::all_reduce ? 2 : 1;
    const double sent = passes * static_cast<double>(p.bytes.value()) * (p.ranks - 1) / p.ranks;
    best = std::max(best, sent / p.time.value());
  }
  // What a rank copies of its own comes on top of what it sends.
  tier.bandwidth = BytesPerSecond(2 * best);
  tier.collectives.name = "measured";
  tier.collectives.fit.method = "default: a single rank has no collectives";
  tier.collectives.coefficients.ll128_share = 0;
  cluster.tiers = {tier};
  if (measured.collectives.empty()) return;
  std::vector<CollectiveMeasurement> points;
  std::vector<double> narrow;
  for (const GroupPoint& p : measured.collectives) {
    if (p.dtype != DType::fp32) continue;
    points.push_back({p.kind, packed_group(cluster, p.ranks), p.bytes, p.time});
  }
  const CollectiveFit fit = fit_collectives(cluster, 0, points);
  CollectiveCurve& curve = cluster.tiers.front().collectives;
  curve.coefficients = fit.coefficients;
  for (const CollectiveResidual& each : collective_residuals(cluster, points)) {
    if (each.what == "all") {
      curve.fit = {true,
                   method,
                   "soft L1 of log(predicted / measured) by Levenberg-Marquardt",
                   fit.points,
                   each.median_error,
                   each.p95_error};
    }
    const bool by_kind = each.what.find(',') == std::string::npos && each.what != "all";
    if (by_kind) {
      residuals.push_back({each.what, each.points, each.median_error, each.p95_error, ""});
    }
  }
  // The curve counts bytes: sums in bf16 have as many of another rate.
  for (const GroupPoint& p : measured.collectives) {
    if (p.dtype == DType::fp32) continue;
    const Seconds predicted =
        collective_time(cluster, p.kind, p.bytes, packed_group(cluster, p.ranks));
    narrow.push_back(std::abs(predicted / p.time - 1));
  }
  if (narrow.empty()) return;
  const int count = static_cast<int>(narrow.size());
  const ErrorSummary error = summarise(std::move(narrow));
  residuals.push_back({"collectives in bf16, by that of fp32", count, error.median, error.p95, ""});
}

}  // namespace

FittedMachine fit_machine(const std::string& name, const Machine& machine,
                          const RanksOnMachine& ranks, const Measurements& measured) {
  const std::string method = fmt::format(
      "shardwise-run calibrate on {}, {} ({} cores), {} ranks by {} at once, {}", machine.host,
      machine.processor, machine.cores, ranks.ranks, ranks.communicator, machine.date);
  FittedMachine fitted;
  ClusterSpec& cluster = fitted.cluster;
  GpuSpec& gpu = cluster.gpu;
  describe(machine, ranks, method, gpu);
  const double flops = best_gemm(measured.products);
  const double bytes = best_move(measured);
  gpu.memory_bandwidth = BytesPerSecond(bytes);
  for (const DType dtype : kTypes) gpu.peaks.emplace_back(dtype, FlopsPerSecond(flops));
  gpu.launch_latency = measured.operation;

  gpu.grouped_gemm.fit.method = "default: our executor has no grouped products";
  for (const DType dtype : kTypes) fit_products(dtype, measured, method, fitted);
  gpu.memory_bound = fit_memory_bound(gpu, measured.copies, method);
  fitted.residuals.push_back(residual_of("copies", gpu.memory_bound.fit,
                                         bytes * gpu.memory_bound.bandwidth_share, "GB/s"));
  fit_rates(measured, gpu, fitted.residuals);

  cluster.name = name;
  cluster.label =
      fmt::format("{}: {} ranks by {} on {} cores, {} threads each, {}", machine.host, ranks.ranks,
                  ranks.communicator, machine.cores, ranks.threads, machine.date);
  cluster.gpus = ranks.ranks;
  cluster.gpus_per_node = ranks.ranks;
  fit_links(ranks, method, measured, cluster, fitted.residuals);
  cluster.host_memory_per_node = machine.memory;
  cluster.host_link = gpu.memory_bandwidth;
  cluster.storage_read = BytesPerSecond(1e9);
  cluster.storage_write = BytesPerSecond(1e9);
  cluster.sources = {"host_memory_gb_per_node: the machine's", "host_link_gb_per_s: its memory's",
                     "storage: taken, not measured", "node_watts: not measured"};
  return fitted;
}

}  // namespace shardwise::exec
