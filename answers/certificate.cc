#include "answers/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "answers/simulated_steps.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/estimate/loss_rows.h"
#include "planner/search/layouts_below.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

/// Layouts that are simulated at most: of Llama-3.1-405B on 16,384 GPUs a second on two cores.
constexpr std::size_t kMostCertified = 256;

/// Layouts of all engines and counts of GPUs, by their bounds.
struct OpenLayouts {
  std::vector<PlanRow> rows;
  Seconds others = Seconds(std::numeric_limits<double>::infinity());
};

/// The jobs of which a layout runs one: rows of a loss that nobody stated are decided for each.
std::vector<JobSpec> jobs_of(const PlanQuestion& q, const EngineProfile& engine) {
  std::vector<JobSpec> jobs = {q.job};
  const bool decides =
      q.job.loss_chunk_rows == kOpenLossRows && kernels_of(q.job, engine) == Kernels::planned;
  if (!decides) return jobs;
  jobs.assign(kLossRowChoices.size(), q.job);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].loss_chunk_rows = kLossRowChoices[i];
  return jobs;
}

/// Adds what `below` lists and was not listed for another job.
void add_listed(const PlanQuestion& q, std::size_t engine, std::size_t cluster,
                const LayoutsBelow& below, OpenLayouts& open) {
  open.others = std::min(open.others, below.others);
  for (const Candidate& candidate : below.lowest) {
    PlanRow row;
    row.candidate = candidate;
    row.candidate.engine = static_cast<std::int32_t>(engine);
    row.cluster = &q.clusters[cluster];
    row.engine = q.engines[engine]->name;
    const auto same = std::ranges::find_if(open.rows, [&](const PlanRow& each) {
      return each.cluster == row.cluster && each.candidate.engine == row.candidate.engine &&
             each.candidate.layout == candidate.layout;
    });
    if (same == open.rows.end()) {
      open.rows.push_back(std::move(row));
    } else if (candidate.cost.step_time < same->candidate.cost.step_time) {
      *same = std::move(row);
    }
  }
}

OpenLayouts open_layouts(const PlanQuestion& q, const PlanAnswer& answer, Seconds limit) {
  OpenLayouts open;
  for (std::size_t e = 0; e < q.engines.size(); ++e) {
    if (!answer.engines[e].refused.empty()) continue;
    for (std::size_t c = 0; c < q.clusters.size(); ++c) {
      SearchRequest request = q.request(c, e);
      for (const JobSpec& job : jobs_of(q, *q.engines[e])) {
        request.job = &job;
        const Result<LayoutsBelow> below = layouts_below(request, limit, kMostCertified);
        if (below) add_listed(q, e, c, *below, open);  // a count of GPUs may be refused
      }
    }
  }
  std::ranges::stable_sort(open.rows, {},
                           [](const PlanRow& row) { return row.candidate.cost.step_time; });
  return open;
}

/// Leaves the layouts that are simulated within the limit of passes.
void cut_to_limit(const PlanQuestion& q, OpenLayouts& open) {
  std::int64_t left = static_cast<std::int64_t>(kSimulated) * kMostLayerPasses;
  std::size_t kept = 0;
  for (; kept < std::min(open.rows.size(), kMostCertified); ++kept) {
    left -= layer_passes_of_step(plan_of(q, open.rows[kept]));
    if (left < 0) break;
  }
  if (kept == open.rows.size()) return;
  open.others = std::min(open.others, open.rows[kept].candidate.cost.step_time);
  open.rows.resize(kept);
}

/// The simulated step of a row of the answer that is this layout.
std::optional<Seconds> known_step(const PlanAnswer& answer, const PlanRow& row) {
  const auto known = std::ranges::find_if(answer.best, [&](const PlanRow& each) {
    return each.simulated && each.cluster == row.cluster && each.engine == row.engine &&
           each.candidate.layout == row.candidate.layout;
  });
  return known == answer.best.end() ? std::nullopt : known->simulated;
}

/// Cost and rates of a row that had a bound alone.
void fill_rates(const PlanQuestion& q, PlanRow& row) {
  const Plan plan = plan_of(q, row);
  row.candidate.cost = evaluate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  const StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  const double longer = row.step() / report.step_time;
  row.mfu = report.mfu / longer;
  row.tokens_per_s = report.tokens_per_s / longer;
  row.dollars_per_1e9_tokens = report.dollars_per_1e9_tokens * longer;
}

}  // namespace

std::optional<Certificate> certify(const PlanQuestion& question, const PlanAnswer& answer,
                                   const SayPlanning& say) {
  const PlanQuestion& q = question;
  if (answer.best.empty() || !answer.best.front().simulated) return std::nullopt;
  const bool by_time = q.objective == Objective::step_time ||
                       (q.clusters.size() == 1 && q.objective != Objective::memory);
  if (!by_time) return std::nullopt;
  if (say) say("proving what other layouts may gain");
  Certificate made;
  const Seconds best = answer.best.front().step();
  OpenLayouts open = open_layouts(q, answer, best * (1 / (1 + kProved)));
  cut_to_limit(q, open);
  std::vector<PlanRow*> unknown;
  std::vector<Plan> plans;
  for (PlanRow& row : open.rows) {
    row.simulated = known_step(answer, row);
    if (row.simulated) continue;
    unknown.push_back(&row);
    plans.push_back(plan_of(q, row));
  }
  const std::vector<Seconds> steps = simulated_steps(plans, q.threads);
  for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i]->simulated = steps[i];
  Seconds least = std::min(best, open.others);
  for (const PlanRow& row : open.rows) {
    least = std::min(least, *row.simulated);
    const Seconds fastest = made.fastest ? made.fastest->step() : best;
    if (row.step() < fastest) made.fastest = row;
  }
  made.faster = best / least - 1;
  if (made.fastest) fill_rates(q, *made.fastest);
  made.simulated = std::ssize(open.rows);
  for (const SearchCounts& counts : answer.counts()) made.valid += counts.space.legal;
  return made;
}

std::string certificate_words(const Certificate& certificate) {
  // Up, so that what is printed is proved.
  const double share = std::ceil(certificate.faster * 1000 - 1e-6) / 10;
  std::string words =
      fmt::format("proved: no layout that fits is more than {:.1f} % faster; {} of {} simulated",
                  share, format_count(certificate.simulated), format_count(certificate.valid));
  if (certificate.fastest) {
    const PlanRow& row = *certificate.fastest;
    const Layout& layout = row.candidate.layout;
    words += fmt::format(", the fastest in {}: {}, tp {}, cp {}, pp {}, micro_batch_size {}, …",
                         format_seconds(row.step()), row.engine, layout.tp, layout.cp, layout.pp,
                         layout.micro_batch_size);
  }
  return words;
}

}  // namespace shardwise::sim
