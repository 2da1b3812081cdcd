#include "executor/calibrate/fit_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/cost/fit_attention.h"
#include "planner/cost/fit_gemm.h"
#include "planner/cost/fit_quality.h"
#include "planner/spec/names.h"

namespace shardwise::exec {
namespace {

constexpr double kGiga = 1e9;

double flops_of(const GemmPoint& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
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
  std::map<std::pair<MoveKind, Pass>, std::vector<MovePoint>> groups;
  for (const KindPoint& p : measured.kinds) groups[{p.kind, p.pass}].push_back(p.point);
  MemoryBoundCurve& curve = gpu.memory_bound;
  const double bandwidth = gpu.memory_bandwidth.value();
  for (const auto& [key, points] : groups) {
    std::vector<double> shares;
    for (const MovePoint& p : points) {
      const double moving = std::max(0.1 * p.time.value(), p.time.value() - curve.start.value());
      shares.push_back(static_cast<double>(p.moved.value()) / bandwidth / moving);
    }
    const double share = std::clamp(rounded_coefficient(summarise(shares).median), 1e-6, 1.0);
    auto rate = std::ranges::find(curve.rates, key.first, &MoveRate::kind);
    if (rate == curve.rates.end()) {
      rate = curve.rates.insert(rate, {key.first, share, share});
    }
    (key.second == Pass::forward ? rate->forward_share : rate->backward_share) = share;
    std::vector<double> errors;
    for (const MovePoint& p : points) {
      const Seconds predicted = memory_bound_time(gpu, p.moved, key.first, key.second);
      errors.push_back(std::abs(predicted / p.time - 1));
    }
    const ErrorSummary error = summarise(std::move(errors));
    residuals.push_back({fmt::format("{} {}", name_of(key.first),
                                     key.second == Pass::forward ? "forward" : "backward"),
                         static_cast<int>(points.size()), error.median, error.p95,
                         fmt::format("{:.3g} GB/s", share * bandwidth / kGiga)});
  }
}

Residual residual_of(const std::string& curve, const FitRecord& fit, double rate,
                     const char* unit) {
  return {curve, fit.points, fit.median_error, fit.p95_error,
          fmt::format("{:.3g} {}", rate / kGiga, unit)};
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
      fmt::format("peak_tflops: best product, {}", measured),
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
  for (const GroupPoint& p : measured.collectives) {
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
  gpu.peaks = {{DType::fp32, FlopsPerSecond(flops)}};
  gpu.launch_latency = measured.operation;

  gpu.gemm = {fit_gemm(gpu, DType::fp32, measured.products, method)};
  fitted.residuals.push_back(residual_of("products", gpu.gemm.front().fit, flops, "GFLOP/s"));
  gpu.grouped_gemm.fit.method = "default: our executor has no grouped products";
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    AttentionCurve& curve = pass == Pass::forward ? gpu.attention_forward : gpu.attention_backward;
    curve = fit_attention(gpu, pass, measured.attention, method, DType::fp32);
    double best = 0;
    for (const HeadRate& rate : curve.rates) best = std::max(best, rate.rate_share * flops);
    fitted.residuals.push_back(
        residual_of(pass == Pass::forward ? "attention forward" : "attention backward", curve.fit,
                    best, "GFLOP/s"));
  }
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
