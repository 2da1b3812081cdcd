#include "simulator/comparison/compare_runs.h"

namespace shardwise::sim {
namespace {

StepReport report_of_kernels(const ProfiledSteps& steps) {
  StepReport report;
  report.step_time = steps.median().profile.length;
  report.timeline.emplace();
  const auto count = static_cast<double>(steps.steps.size());
  for (const KernelTime& kernel : steps.kernels) {
    report.timeline->operations.push_back(
        {kernel.name, 0, "", kernel.count, kernel.time / count, {}});
  }
  return report;
}

}  // namespace

StepReport report_of(const TracedRun& run) {
  const OperationStep& step = run.median_operations();
  StepReport report;
  report.origin = run.head.origin;
  report.plan_digest = run.head.plan_digest;
  report.step_time = step.length;
  report.timeline.emplace();
  for (const OperationSum& sum : step.operations) {
    report.timeline->operations.push_back({sum.name, sum.stage, "", sum.count, sum.time, {}});
  }
  return report;
}

Comparison compare_profiled(const ProfiledSteps& first, const ProfiledSteps& second) {
  return compare(report_of_kernels(first), report_of_kernels(second));
}

}  // namespace shardwise::sim
