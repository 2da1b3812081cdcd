#include "planner/question/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/cost/software/usual_kernels.h"
#include "planner/estimate/estimate.h"
#include "planner/search/advice/cheapest_fix.h"
#include "planner/search/advice/default_batch.h"
#include "planner/search/advice/relief.h"
#include "planner/search/advice/single_changes.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

constexpr int kMostChanges = 3;

/// What is asked beside a layout.
struct Asked {
  const ModelSpec& model;
  const ClusterSpec& cluster;
  const JobSpec& job;
  const EngineProfile& engine;
  const std::function<bool(const Layout&)>& is_open;
};

/// "--recompute=full, then --tp=8: 61.2 GiB, 1.32 s a step": one change, or more of which each
/// saves most memory and the cheapest is then enough; empty where so many are not.
Advice few_changes(const Asked& s, Layout layout, Bytes usable) {
  std::string text;
  for (int change = 1; change <= kMostChanges; ++change) {
    const std::optional<Fix> fix =
        cheapest_fix(s.model, s.cluster, s.job, s.engine, layout, usable, s.is_open);
    if (fix) return {text + to_string(*fix), fix->change.layout};
    if (change == kMostChanges) break;
    std::vector<Neighbour> near = neighbours(s.model, s.cluster, s.job, s.engine, layout, usable);
    std::erase_if(
        near, [&](const Neighbour& each) { return s.is_open && !s.is_open(each.change.layout); });
    const auto best = std::ranges::max_element(near, {}, &Neighbour::memory_gained);
    if (best == near.end() || best->memory_gained <= Bytes(0)) break;
    layout = best->change.layout;
    text += best->change.text + ", then ";
  }
  return {};
}

/// "--adamw paged: 61.2 GiB, 1.32 s a step", or that and a few changes of the layout; empty where
/// the engine takes no optimizer of bitsandbytes or has one, and where it does not fit with it
/// either.
Advice states_on_host(const Asked& s, const Layout& layout, Bytes usable) {
  const bool open = takes_bitsandbytes(s.job, s.engine) && !is_bitsandbytes(s.job.adamw) &&
                    s.job.moment_dtype == DType::fp32;
  if (!open) return {};
  for (const AdamwKernel adamw : {AdamwKernel::paged, AdamwKernel::paged_8bit}) {
    JobSpec job = s.job;
    job.adamw = adamw;
    const std::string flag = fmt::format("--adamw {}", name_of(adamw));
    const Evaluation cost = evaluate(s.model, s.cluster, job, s.engine, layout);
    if (fit_of(cost, usable) == Fit::fits) {
      return {fmt::format("{}: {}, {} a step", flag, format_bytes(cost.point),
                          format_seconds(cost.step_time)),
              layout};
    }
    Advice changes = few_changes({s.model, s.cluster, job, s.engine, s.is_open}, layout, usable);
    if (changes.text.empty()) continue;
    changes.text.insert(0, flag + ", then ");
    return changes;
  }
  return {};
}

/// "--gpus 240, then --tp=8 --pp=2: 61.2 GiB, 1.32 s a step".
Advice more_gpus(const Asked& s, const Layout& layout) {
  JobSpec job = s.job;
  if (job.global_batch_size == 0) job.global_batch_size = default_batch(s.cluster, job, layout);
  SearchRequest request;
  request.model = &s.model;
  request.cluster = &s.cluster;
  request.job = &job;
  request.engines = {&s.engine};
  request.counted = false;
  std::optional<Relief> found = fewest_gpus(request, [](const std::string&) {});
  if (!found || (s.is_open && !s.is_open(found->best.layout))) return {};
  // What is typed beside --gpus: data parallelism follows from the other degrees.
  Layout grown = layout;
  grown.dp_shard = found->best.layout.dp_shard;
  const std::string flags = flags_between(grown, found->best.layout);
  if (!flags.empty()) found->text += ", then " + flags;
  return {to_string(*found), found->best.layout};
}

}  // namespace

Advice advice(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
              const EngineProfile& engine, const Layout& layout, Bytes usable,
              const std::function<bool(const Layout&)>& is_open) {
  const Asked all = {model, cluster, job, engine, is_open};
  Advice changes = few_changes(all, layout, usable);
  return changes.text.empty() ? more_gpus(all, layout) : changes;
}

StepReport with_advice(StepReport report, const ModelSpec& model, const ClusterSpec& cluster,
                       const JobSpec& job, const EngineProfile& engine, const Layout& layout) {
  const std::function<bool(const Layout&)> everything;
  const Asked all = {model, cluster, job, engine, everything};
  const Bytes usable = report.verdict.usable;
  Advice changes = few_changes(all, layout, usable);
  if (changes.text.empty()) changes = states_on_host(all, layout, usable);
  if (changes.text.empty()) changes = more_gpus(all, layout);
  report.verdict.cheapest_fix = std::move(changes.text);
  return report;
}

}  // namespace shardwise
