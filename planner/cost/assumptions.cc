#include <fmt/format.h>

#include "planner/cost/explain.h"

namespace shardwise {
namespace {

constexpr const char* kCompute = "docs/time.md, Compute";

void assume_fit(StepReport& report, const char* id, const std::string& what, const FitRecord& fit,
                const char* documented) {
  if (fit.measured) return;
  report.assumptions.push_back({id, what + " follows a documented default, not a measurement",
                                fit.fitted_on.empty() ? documented : fit.fitted_on});
}

}  // namespace

void add_assumptions(StepReport& report, const ClusterSpec& cluster, const JobSpec& job) {
  const GpuSpec& gpu = cluster.gpu;
  bool gemm = false;
  for (const GemmCurve& curve : gpu.gemm) {
    if (curve.dtype != job.precision) continue;
    gemm = true;
    assume_fit(report, "gemm.curve.default", "GEMM time on " + gpu.name, curve.fit, kCompute);
  }
  if (!gemm) {
    report.assumptions.push_back(
        {"gemm.curve.other",
         fmt::format("{} has no GEMM curve for {}; the nearest dtype's is used", gpu.name,
                     name_of(job.precision)),
         kCompute});
  }
  assume_fit(report, "attention.forward.curve.default", "attention time on " + gpu.name,
             gpu.attention_forward.fit, kCompute);
  assume_fit(report, "attention.backward.curve.default", "attention gradient time on " + gpu.name,
             gpu.attention_backward.fit, kCompute);
  assume_fit(report, "memory_bound.curve.default", "memory-bound time on " + gpu.name,
             gpu.memory_bound.fit, kCompute);
  for (const LinkTier& tier : cluster.tiers) {
    if (tier.domain_size > 1) {
      assume_fit(report, "collectives.curve.default", "collective time over " + tier.name,
                 tier.collectives.fit, "docs/time.md, Collectives");
    }
  }
}

}  // namespace shardwise
