#include "answers/plan_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "answers/simulated_steps.h"
#include "planner/engines/engines.h"
#include "planner/estimate/interval_table.h"
#include "planner/estimate/loss_rows.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

/// What the searches of one engine found, on all counts of GPUs.
struct Found {
  std::vector<PlanRow> best;  // by the objective, of the step-time model
  std::vector<PlanRow> front;
  std::vector<PlanRow> risky;
  std::vector<PlanRow> smallest;
};

/// Reports, one a count of GPUs, for rates: layouts of one count do the same work in another time.
class Rates {
 public:
  explicit Rates(const PlanQuestion& q) : q_(q), reports_(q.clusters.size()) {}

  void fill(PlanRow& row) {
    std::optional<StepReport>& made =
        reports_[static_cast<std::size_t>(row.cluster - q_.clusters.data())];
    if (!made) {
      const EngineProfile& engine = *q_.engines[static_cast<std::size_t>(row.candidate.engine)];
      made = estimate(q_.model, *row.cluster, q_.job, engine, row.candidate.layout);
    }
    const double longer = row.step() / made->step_time;
    row.mfu = made->mfu / longer;
    row.tokens_per_s = made->tokens_per_s / longer;
    row.dollars_per_1e9_tokens = made->dollars_per_1e9_tokens * longer;
  }

 private:
  const PlanQuestion& q_;
  std::vector<std::optional<StepReport>> reports_;
};

/// What rows over several counts of GPUs are ranked by, least first.
double value_of(Objective objective, const PlanRow& row) {
  switch (objective) {
    case Objective::step_time:
      return row.step().value();
    case Objective::memory:
      return static_cast<double>(row.candidate.cost.point.value());
    case Objective::cost:
    case Objective::tokens_per_dollar:
      return row.dollars_per_1e9_tokens;
  }
  return 0;
}

/// Orders rows by the step-time model alone.
void rank_by_model(const PlanQuestion& q, std::vector<PlanRow>& rows) {
  std::ranges::stable_sort(rows, {}, [&](const PlanRow& row) {
    const double value = value_of(q.objective, row);
    return q.objective == Objective::memory ? value
                                            : value * (row.candidate.cost.step_time / row.step());
  });
}

std::vector<PlanRow> rows_of(const PlanQuestion& q, std::span<const Candidate> candidates,
                             std::size_t cluster, std::size_t engine, Rates& rates) {
  std::vector<PlanRow> rows;
  for (const Candidate& candidate : candidates) {
    PlanRow& row = rows.emplace_back();
    row.candidate = candidate;
    row.candidate.engine = static_cast<std::int32_t>(engine);
    row.cluster = &q.clusters[cluster];
    row.engine = q.engines[engine]->name;
    rates.fill(row);
  }
  return rows;
}

void append_rows(std::vector<PlanRow>& to, std::vector<PlanRow> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Searches one engine on all counts of GPUs. \returns what is wrong with the question
Diagnostics search_engine(const PlanQuestion& q, std::size_t engine, Rates& rates,
                          const SayPlanning& say, PlanAnswer& answer, Found& found) {
  EngineAnswer& of = answer.engines[engine];
  for (std::size_t c = 0; c < q.clusters.size(); ++c) {
    SearchRequest request = q.request(c, engine);
    if (q.takes_engine) request.front = false;  // of the engine that is taken, later
    request.progress = [&](const SearchProgress& p) {
      if (!say) return;
      say(fmt::format("{}: {} layouts, {:.0f} % of the space", of.engine->name,
                      format_count(p.evaluated),
                      100.0 * static_cast<double>(p.items_done) /
                          static_cast<double>(std::max<std::int64_t>(1, p.items))));
    };
    const Result<SearchResult> result = search(request);
    if (!result) return result.problems();
    answer.usable = result->usable;
    if (answer.held.empty()) answer.held = result->held;
    if (c == 0) {
      of.counts = result->counts.front();
    } else {
      of.counts += result->counts.front();
    }
    const auto add = [&](std::vector<PlanRow>& rows, std::span<const Candidate> candidates) {
      append_rows(rows, rows_of(q, candidates, c, engine, rates));
    };
    add(found.best, result->best);
    add(found.front, result->front);
    add(found.risky, result->risky);
    if (result->smallest) add(found.smallest, {&*result->smallest, 1});
  }
  if (of.counts.space.legal == 0) of.refused = why_none_is_legal(q.request(0, engine));
  rank_by_model(q, found.best);
  return {};
}

void find_front(const PlanQuestion& q, std::size_t engine, Rates& rates, Found& found) {
  for (std::size_t c = 0; c < q.clusters.size(); ++c) {
    const Result<SearchResult> result = search(q.request(c, engine));
    if (result) append_rows(found.front, rows_of(q, result->front, c, engine, rates));
  }
}

/// Why steps of these rows are not simulated; empty when they may be.
std::string not_simulated(const PlanQuestion& q, std::span<PlanRow* const> rows) {
  std::int64_t most = 0;
  for (const PlanRow* row : rows) most = std::max(most, layer_passes_of_step(plan_of(q, *row)));
  if (most <= kMostLayerPasses) return "";
  return fmt::format(
      "a step of {} passes of micro-batches through layers is not simulated to rank "
      "it, at most {}",
      format_count(most), format_count(kMostLayerPasses));
}

void simulate_rows(const PlanQuestion& q, const std::vector<PlanRow*>& rows, Rates& rates) {
  std::vector<Plan> plans;
  std::vector<PlanRow*> left;
  for (PlanRow* row : rows) {
    Plan plan = plan_of(q, *row);
    if (q.known_step) row->simulated = q.known_step(plan);
    if (row->simulated) continue;
    plans.push_back(std::move(plan));
    left.push_back(row);
  }
  const std::vector<Seconds> steps = simulated_steps(plans, q.threads);
  for (std::size_t i = 0; i < left.size(); ++i) left[i]->simulated = steps[i];
  for (PlanRow* row : rows) rates.fill(*row);
}

/// Rows of one front may be beaten by rows of another.
void keep_front(std::vector<PlanRow>& front) {
  std::ranges::stable_sort(front, {}, [](const PlanRow& row) {
    return std::tuple(row.candidate.cost.point, row.candidate.cost.step_time);
  });
  Seconds least(std::numeric_limits<double>::infinity());
  std::erase_if(front, [&](const PlanRow& row) {
    const bool beaten = row.candidate.cost.step_time >= least;
    least = std::min(least, row.candidate.cost.step_time);
    return beaten;
  });
}

/// The best of `rows` by the step-time model take the order of their simulated steps, and go before
/// the others; rows that tie with the best are marked.
void rank_simulated(const PlanQuestion& q, PlanAnswer& answer, Rates& rates,
                    const SayPlanning& say) {
  std::vector<PlanRow>& rows = answer.best;
  rank_by_model(q, rows);
  if (q.simulate) {
    std::vector<PlanRow*> listed;
    std::vector<Plan> plans;
    for (std::size_t i = 0; i < std::min(rows.size(), std::max(q.top, kSimulated)); ++i) {
      listed.push_back(&rows[i]);
      plans.push_back(plan_of(q, rows[i]));
    }
    const std::span<PlanRow*> first = std::span(listed).first(std::min(listed.size(), kSimulated));
    answer.unsimulated = not_simulated(q, first);
    if (answer.unsimulated.empty()) {
      if (say) say("simulating the best layouts");
      listed.resize(count_to_simulate(plans));
      std::erase_if(listed, [](const PlanRow* row) { return row->simulated.has_value(); });
      simulate_rows(q, listed, rates);
    } else {
      for (PlanRow& row : rows) {  // all by the same clock
        row.simulated.reset();
        rates.fill(row);
      }
    }
  }
  const auto others = std::stable_partition(
      rows.begin(), rows.end(), [](const PlanRow& row) { return row.simulated.has_value(); });
  std::stable_sort(rows.begin(), others, [&](const PlanRow& a, const PlanRow& b) {
    return value_of(q.objective, a) < value_of(q.objective, b);
  });
  if (rows.size() > q.top) rows.resize(q.top);
  answer.tie = step_ratio_interval(rows.front().engine, *rows.front().cluster);
  if (q.objective == Objective::memory || !answer.tie.known()) return;
  // The interval of the ratio of two steps contains 1.
  const double most = value_of(q.objective, rows.front()) / answer.tie.low;
  for (PlanRow& row : rows) {
    const bool same_clock = row.simulated.has_value() == rows.front().simulated.has_value();
    row.tied = &row != &rows.front() && same_clock && value_of(q.objective, row) <= most;
  }
}

/// The fewest H100 on which a layout fits, for a cluster of GPUs that cannot have enough.
std::optional<Relief> on_h100(SearchRequest request, const SayPlanning& trying) {
  constexpr const char* kName = "dgx-h100";
  const ClusterSpec& asked = *request.cluster;
  if (asked.gpu.vendor == "cpu" || asked.name == kName || !request.locks.empty()) return {};
  const Result<ClusterSpec> named = find_cluster(kName);
  if (!named) return {};
  // Half a node: the first count to be tried is a node.
  const Result<ClusterSpec> cluster = with_gpus(*named, named->gpus_per_node / 2);
  if (!cluster) return {};
  request.cluster = &*cluster;
  request.most_memory = Bytes(0);
  std::optional<Relief> found = fewest_gpus(request, trying);
  if (found) found->text = fmt::format("--cluster {} {}", kName, found->text);
  return found;
}

NothingFits nothing_fits(const PlanQuestion& q, const PlanAnswer& answer, std::vector<Found>& found,
                         const SayPlanning& say) {
  NothingFits nothing;
  std::vector<PlanRow> risky;
  std::vector<PlanRow> smallest;
  for (Found& each : found) {
    append_rows(risky, std::move(each.risky));
    append_rows(smallest, std::move(each.smallest));
  }
  nothing.at_risk = !risky.empty();
  if (nothing.at_risk) {
    rank_by_model(q, risky);
    nothing.nearest = {risky.front()};
  } else {
    nothing.nearest = {*std::ranges::min_element(
        smallest, {}, [](const PlanRow& row) { return row.candidate.cost.point; })};
  }
  SearchRequest request = q.request(q.clusters.size() - 1);
  request.engines.clear();
  for (const EngineAnswer& each : answer.engines) {
    if (each.refused.empty()) request.engines.push_back(each.engine);
  }
  const auto trying = [&](const std::string& what) {
    if (say) say("trying " + what);
  };
  const auto way = [&](const std::optional<Relief>& relief) -> std::optional<WayOut> {
    if (!relief) return std::nullopt;
    const EngineProfile* const engine =
        request.engines.size() > 1 ? request.engines[static_cast<std::size_t>(relief->best.engine)]
                                   : nullptr;
    return WayOut{*relief, engine};
  };
  nothing.way_out = way(cheapest_relief(request, trying));
  nothing.more_gpus = way(fewest_gpus(request, trying));
  if (!nothing.way_out && !nothing.more_gpus) nothing.more_gpus = way(on_h100(request, trying));
  return nothing;
}

}  // namespace

std::vector<SearchCounts> PlanAnswer::counts() const {
  std::vector<SearchCounts> counts;
  for (const EngineAnswer& each : engines) counts.push_back(each.counts);
  return counts;
}

ReportIntervals intervals_of(const PlanRow& row) {
  const EngineProfile* engine = find_engine(row.engine);
  return engine == nullptr ? ReportIntervals() : report_intervals(*engine, *row.cluster);
}

Plan plan_of(const PlanQuestion& question, const PlanRow& row) {
  const EngineProfile& engine = *question.engines[static_cast<std::size_t>(row.candidate.engine)];
  const Bytes usable = usable_memory(*row.cluster, question.job, question.max_memory);
  return {
      question.model, *row.cluster,
      decided_job(question.model, *row.cluster, question.job, engine, row.candidate.layout, usable),
      engine, row.candidate.layout};
}

Result<PlanAnswer> answer(const PlanQuestion& question, const SayPlanning& say) {
  const PlanQuestion& q = question;
  PlanAnswer answer;
  Rates rates(q);
  std::vector<Found> found(q.engines.size());
  Diagnostics first_problems;
  std::size_t refusing = 0;
  for (std::size_t e = 0; e < q.engines.size(); ++e) {
    answer.engines.push_back({q.engines[e], {}, {}, {}});
    Diagnostics problems = search_engine(q, e, rates, say, answer, found[e]);
    if (problems.empty()) problems = answer.engines[e].refused;
    const bool refuses = !problems.empty() || answer.engines[e].counts.space.legal == 0;
    if (first_problems.empty()) first_problems = problems;
    answer.engines[e].refused = std::move(problems);
    refusing += refuses;
  }
  if (refusing == q.engines.size()) {
    if (!first_problems.empty()) return first_problems;
    return Diagnostics{{"command line", 0, 0, "--space", "no legal layout in the usual space",
                        "use --space full"}};
  }

  // The best of each engine, by their simulated steps where several are compared.
  std::vector<PlanRow*> firsts;
  for (Found& each : found) {
    if (!each.best.empty()) firsts.push_back(&each.best.front());
  }
  if (firsts.size() > 1 && q.simulate && not_simulated(q, firsts).empty()) {
    if (say) say("simulating the best layout of each engine");
    simulate_rows(q, firsts, rates);
  }
  std::size_t taken = 0;
  for (std::size_t e = 0; e < found.size(); ++e) {
    if (found[e].best.empty()) continue;
    answer.engines[e].best = found[e].best.front();
    const auto& so_far = answer.engines[taken].best;
    if (!so_far ||
        value_of(q.objective, *answer.engines[e].best) < value_of(q.objective, *so_far)) {
      taken = e;
    }
  }
  if (q.takes_engine && q.front) find_front(q, taken, rates, found[taken]);
  for (std::size_t e = 0; e < found.size(); ++e) {
    if (q.takes_engine && e != taken) continue;
    append_rows(answer.best, std::move(found[e].best));
    append_rows(answer.front, std::move(found[e].front));
  }
  keep_front(answer.front);
  if (answer.best.empty()) {
    answer.nothing = nothing_fits(q, answer, found, say);
    return answer;
  }
  rank_simulated(q, answer, rates, say);
  // The row that leads is what its engine gives.
  const auto leads = static_cast<std::size_t>(answer.best.front().candidate.engine);
  answer.engines[leads].best = answer.best.front();
  return answer;
}

Result<WhyNot> why_not(const PlanQuestion& question, const PlanAnswer& answer,
                       const std::vector<std::pair<std::string, std::string>>& values) {
  const PlanRow& best = answer.best.front();
  const auto cluster = static_cast<std::size_t>(best.cluster - question.clusters.data());
  SearchRequest request =
      question.takes_engine
          ? question.request(cluster, static_cast<std::size_t>(best.candidate.engine))
          : question.request(cluster);
  request.top = 1;
  request.front = false;
  const Result<SearchResult> found = search(request);
  if (!found) return found.problems();
  return shardwise::why_not(request, found->best.front(), values);
}

}  // namespace shardwise::sim
