#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "planner/cost/kernels/compute.h"
#include "planner/estimate/explain.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// The curves that the products use, each once, as data set or method.
std::string curves_of(const StepReport& report, const GpuSpec& gpu) {
  std::vector<std::string> sources;
  for (const GemmUse& gemm : report.gemms) {
    const GemmCurve* curve = gpu.gemm_curve(gemm.dtype);
    if (curve == nullptr) continue;
    const FitRecord& fit = curve->fit;
    const std::string text = fmt::format(
        "{}: {}", name_of(curve->dtype),
        fit.measured ? fmt::format("{}; left-out points {} off in the median, {} at the 95th "
                                   "percentile",
                                   fit.fitted_on, format_percent(fit.median_error),
                                   format_percent(fit.p95_error))
                     : fit.method);
    if (std::find(sources.begin(), sources.end(), text) == sources.end()) sources.push_back(text);
  }
  return fmt::format("{}", fmt::join(sources, "; "));
}

}  // namespace

void explain_gemms(StepReport& report, const GpuSpec& gpu) {
  if (report.gemms.empty()) return;
  std::array<std::size_t, 3> count = {};
  for (const GemmUse& gemm : report.gemms) ++count[static_cast<std::size_t>(gemm.basis)];
  report.explanations.push_back(
      {"time.gemm", "matrix products by what their time rests on; each is priced by the curve",
       fmt::format("of {}: {} found in measured tables, {} interpolated, {} extrapolated",
                   report.gemms.size(), count[0], count[1], count[2]),
       curves_of(report, gpu)});

  const GemmUse* longest = nullptr;
  for (const GemmUse& gemm : report.gemms) {
    // Where the gradient of a weight goes depends on the engine and is not kept in a GemmUse.
    const bool plain = gemm.groups == 1 && gemm.product != "weight gradient";
    if (plain && (longest == nullptr || gemm.time > longest->time)) longest = &gemm;
  }
  if (longest == nullptr) return;
  const ComputeExplanation e =
      explain_gemm(gpu, longest->dtype, longest->m, longest->n, longest->k);
  report.explanations.push_back(
      {"time.gemm.longest",
       fmt::format("{}, {}, {}", longest->layer, longest->operation, longest->product),
       fmt::format("{}", fmt::join(e.steps, "; ")), kComputeSource});
}

}  // namespace shardwise
