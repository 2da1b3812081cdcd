// The mesh workspace: what its ranks do, other orders of axes, links of another bandwidth.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "gui/models/session/session.h"
#include "planner/legality/legality.h"
#include "planner/search/advice/best_layout.h"
#include "planner/search/advice/faster_links.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {

void Session::show_mesh() {
  MeshState& mesh = state_.mesh;
  if (state_.workspace != Workspace::mesh || meshed_ == puts_) return;
  meshed_ = puts_;
  mesh.view = mesh_view(state_.plan);
  mesh.facts.reset();
  mesh.tried.reset();
  if (mesh.pinned && *mesh.pinned >= mesh.view.ranks) mesh.pinned.reset();
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const Predictions by = predictions();
  worker_.post("mesh", [this, plan, by](const Worker::Task&) -> Worker::Apply {
    auto facts = std::make_shared<const MeshFacts>(mesh_facts(*plan, by));
    return [this, facts] { state_.mesh.facts = facts; };
  });
  show_links();
}

void Session::show_links() {
  if (linked_ == puts_) return;
  linked_ = puts_;
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const Predictions by = predictions();
  worker_.post("curves", [this, plan, by](const Worker::Task&) -> Worker::Apply {
    auto curves = std::make_shared<std::vector<StretchCurve>>(stretch_curves(*plan, by));
    return [this, curves] { state_.mesh.stretch.curves = std::move(*curves); };
  });
  price_links();
}

std::string Session::pin_rank(std::optional<std::int64_t> rank) {
  if (rank && *rank >= state_.plan.layout.world()) {
    return fmt::format("the plan has {} ranks", state_.plan.layout.world());
  }
  state_.mesh.pinned = rank;
  return "";
}

std::string Session::set_order(const std::string& words, bool only_try) {
  state_.mesh.tried.reset();
  if (words.empty() && only_try) return "";
  const std::optional<RankOrder> order = read_order(state_.plan.layout, words);
  if (!order) {
    return fmt::format("{} is no order of axes: {}", words.empty() ? "nothing" : words,
                       order_text(state_.plan.layout, state_.plan.layout.order));
  }
  Plan plan = state_.plan;
  plan.layout.order = *order;
  const Diagnostics problems = check_plan(plan);
  if (!problems.empty()) return one_line(problems);
  if (only_try) {
    state_.mesh.tried = *order;
    state_.mesh.tried_step = predictions().step_time(plan);
  } else if (*order != state_.plan.layout.order) {
    change(std::move(plan), Change::layout);
  }
  return "";
}

std::string Session::set_bandwidth(const std::string& tier, double factor) {
  std::vector<std::string> names;
  const std::size_t tiers = reached_tiers(state_.plan.cluster);
  for (std::size_t i = 0; i < tiers; ++i) names.push_back(state_.plan.cluster.tiers[i].name);
  const auto found = std::ranges::find(names, tier);
  if (found == names.end()) {
    return fmt::format("{} is no link of these GPUs: {}", tier.empty() ? "nothing" : tier,
                       fmt::join(names, ", "));
  }
  state_.mesh.stretch.factors.resize(tiers, 1);
  state_.mesh.stretch.factors[static_cast<std::size_t>(found - names.begin())] = factor;
  price_links();
  return "";
}

void Session::reset_bandwidth() {
  state_.mesh.stretch.factors.assign(reached_tiers(state_.plan.cluster), 1);
  price_links();
}

std::string Session::take_bandwidth() {
  if (!state_.mesh.stretch.any()) return "every link has the bandwidth that it has";
  Plan plan = stretched(state_.plan, state_.mesh.stretch.factors);
  state_.mesh.stretch.factors.assign(reached_tiers(plan.cluster), 1);
  change(std::move(plan), Change::question);
  return "";
}

void Session::price_links() {
  LinkStretch& links = state_.mesh.stretch;
  links.report.reset();
  links.simulated.reset();
  links.simulated_before.reset();
  links.best.reset();
  worker_.drop("links");
  const bool none = std::ranges::all_of(links.factors, [](double factor) { return factor == 1; });
  if (none) return;
  const auto before = std::make_shared<const Plan>(state_.plan);
  const auto after = std::make_shared<const Plan>(stretched(state_.plan, links.factors));
  const Predictions by = predictions();
  links.report = by.report(*after);
  worker_.post(
      "links",
      [this, before, after, by, known = known_](const Worker::Task& task) -> Worker::Apply {
        const std::optional<Seconds> was = quick_simulation(*before, by);
        const std::optional<Seconds> is = quick_simulation(*after, by);
        task.publish([this, was, is] {
          state_.mesh.stretch.simulated_before = was;
          state_.mesh.stretch.simulated = is;
        });
        const auto best =
            std::make_shared<BestLayout>(best_layout({&after->model, &after->cluster, &after->job,
                                                      &after->engine, false, known, task.stop}));
        if (best->stopped) return {};
        if (best->report) best->report = by.corrected(*std::move(best->report), *after);
        return [this, best] { state_.mesh.stretch.best = std::move(best->report); };
      });
}

}  // namespace shardwise::view
