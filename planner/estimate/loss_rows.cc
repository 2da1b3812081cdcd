#include "planner/estimate/loss_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "planner/cost/kernels/kernel_traits.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/estimate/estimate.h"

namespace shardwise {

std::int64_t usual_loss_chunk_rows(const GpuSpec& gpu) {
  return kernel_traits(gpu).chooses_loss_rows ? kOpenLossRows : 0;
}

JobSpec decided_job(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout, Bytes usable) {
  JobSpec decided = job;
  decided.loss = loss_of(job, engine);
  if (job.loss_chunk_rows != kOpenLossRows) return decided;
  decided.loss_chunk_rows = kUsualLossRows;
  const bool matters =
      kernels_of(job, engine) == Kernels::planned && decided.loss == LossKernel::chunked;
  if (!matters) return decided;
  using Rank = std::tuple<bool, Bytes, Seconds>;
  std::optional<Rank> best;
  for (const std::int64_t rows : kLossRowChoices) {
    JobSpec tried = decided;
    tried.loss_chunk_rows = rows;
    const Evaluation cost = evaluate(model, cluster, tried, engine, layout);
    const bool fits = fit_of(cost, usable) == Fit::fits;
    // Of those that fit the fastest, of others the smallest; of equal ones the fewest rows.
    const Rank rank = {!fits, fits ? Bytes(0) : cost.upper, cost.step_time};
    if (best && *best <= rank) continue;
    best = rank;
    decided = tried;
  }
  return decided;
}

}  // namespace shardwise
