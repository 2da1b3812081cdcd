#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "planner/cost/layer/expert_load.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/software/timing.h"
#include "planner/estimate/explain.h"
#include "planner/legality/held_to.h"
#include "planner/spec/report/curve_sources.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// A curve that was measured in short bursts, where nobody has measured a long run.
void assume_sustained(StepReport& report, const GpuSpec& gpu, const GemmCurve& curve) {
  if (!curve.fit.measured || curve.sustained_measured) return;
  const std::string share = format_percent(curve.sustained_share);
  report.assumptions.push_back(
      {"gemm.sustained.default",
       fmt::format("long runs of {} in {} are assumed to reach {} of the speed of short runs",
                   gpu.name, name_of(curve.dtype), share),
       curve.sustained_source.empty() ? kComputeSource : curve.sustained_source});
}

/// What timing.json says of hosts and of GPUs of one kind, where this job rests on it.
void assume_machines(StepReport& report, const ClusterSpec& cluster, const JobSpec& job,
                     const EngineProfile& engine) {
  const TimingFacts& facts = timing_facts();
  if (const double excess = slowest_gpu_excess(cluster.gpus); excess > 0) {
    report.assumptions.push_back(
        {"gpu.speed",
         fmt::format(
             "GPUs of one kind differ in speed by {:.2f} % (standard deviation); the slowest of {} "
             "takes {:.1f} % longer than the mean",
             facts.gpu_speed_deviation * 100, cluster.gpus, excess * 100),
         facts.gpu_speed_source});
  }
  const TimingFacts::Issue& issue = issue_facts(engine, kernels_of(job, engine));
  if (issue.assumed && !job.cuda_graphs) {
    report.assumptions.push_back(
        {"host.issue",
         fmt::format("the host takes {:.3g} us to launch a kernel, not measured on this machine",
                     issue_time(issue, cluster.gpu).value() * 1e6),
         issue.source});
  }
  if (job.deterministic) {
    report.assumptions.push_back(
        {"deterministic",
         fmt::format(
             "bitwise repeatable attention gradients take {:.3g} times as long, and memory is "
             "filled before use",
             facts.deterministic_backward),
         facts.deterministic_source});
  }
  if (job.dropout > 0 && job.attention != AttentionKernel::materialised) {
    report.assumptions.push_back(
        {"attention.dropout",
         fmt::format("dropout takes fused attention {:.3g} instructions a score forward and {:.3g} "
                     "backward",
                     facts.dropout_forward, facts.dropout_backward),
         facts.dropout_source});
  }
}

/// Which version of an engine the ledger is compared with. Our executor's arena is made of the
/// ledger, so it has none.
void assume_engine(StepReport& report, const EngineProfile& engine) {
  if (engine.allocator == AllocatorKind::arena) return;
  const HeldTo* held = held_to(engine);
  report.assumptions.push_back(
      {"memory.held_to",
       held != nullptr
           ? fmt::format("memory ({}) is compared with the code of {} itself in {} jobs: {}",
                         held->held, engine.name, held->cases, held->version)
           : fmt::format("memory is not compared with the code of {} itself", engine.name),
       "docs/engines.md"});
}

}  // namespace

void add_assumptions(StepReport& report, const ModelSpec& model, const ClusterSpec& cluster,
                     const JobSpec& job, const EngineProfile& engine) {
  const GpuSpec& gpu = cluster.gpu;
  for (const GemmCurve& curve : gpu.gemm) {
    if (curve.dtype == job.precision) assume_sustained(report, gpu, curve);
  }
  for (const BorrowedCurve& curve :
       borrowed_curves(cluster, {job.precision, model.num_experts > 0})) {
    const bool links = curve.id == "collectives";
    report.assumptions.push_back(
        {fmt::format("{}.curve.{}", curve.id, name_of(curve.stand_in)),
         links ? fmt::format("{} are not measured: {}", curve.words, curve.method)
               : fmt::format("{} on {} are not measured: {}", curve.words, gpu.name, curve.method),
         links ? "docs/collectives.md" : kComputeSource});
  }
  assume_machines(report, cluster, job, engine);
  assume_engine(report, engine);
}

void assume_job(StepReport& report, const ModelSpec& model, const ClusterSpec& cluster,
                const JobSpec& job, const Layout& layout, const StepDetail& detail) {
  constexpr double kBusy = 0.5;  // share of a step from which transfers often meet on a link
  const double busy = detail.wire / report.step_time;
  if (busy > kBusy) {
    report.assumptions.push_back(
        {"links.busy",
         fmt::format("the busiest link carries bytes in {:.0f} % of the step; transfers that meet "
                     "on it wait, which only `shardwise simulate` counts",
                     100 * busy),
         "docs/data_parallel_time.md, Links"});
  }
  if (model.num_experts > 1 && layout.ep > 1) {
    report.assumptions.push_back(
        {"experts.load",
         fmt::format("the i-th most popular expert draws i^-{:g} of the tokens: the busiest rank "
                     "of {} gets {:.2f} times the mean",
                     job.expert_skew, layout.ep, busiest_expert_rank(model, job, layout)),
         "planner/cost/layer/expert_load.h; --expert-skew and --expert-imbalance"});
  }
  const Verdict& verdict = report.verdict;
  if (is_paged(job.adamw) && verdict.host > Bytes(0)) {
    const Bytes paged = verdict.host / std::min(cluster.gpus, cluster.gpus_per_node);
    report.assumptions.push_back(
        {"adamw.paged",
         fmt::format("{} of moments a GPU are in managed memory, which no number of the GPU "
                     "counts: there where it has room, else each step moves them over the host "
                     "link and back, at most {} more",
                     format_bytes(paged), format_seconds(paged / cluster.host_link * 2)),
         "docs/memory.md, AdamW of bitsandbytes"});
  }
  if (layout.offload_activations && detail.offload_bytes > 0) {
    report.assumptions.push_back(
        {"offload.bandwidth",
         fmt::format("offloaded activations are hidden at {} a GPU each way; the host link has {}",
                     format_bandwidth(detail.offload_required),
                     format_bandwidth(cluster.host_link)),
         kStepSource});
  }
}

}  // namespace shardwise
