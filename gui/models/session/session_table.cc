// What the strategy table shows, and what is made for the rows that it shows.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "answers/simulated_steps.h"
#include "gui/models/session/session.h"
#include "planner/search/advice/cheapest_fix.h"
#include "planner/search/search.h"

namespace shardwise::view {

void Session::set_filter(const std::string& text) {
  state_.explore.filter_text = text;
  state_.explore.parsed = sim::parse_filter(text);
  refresh_shown();
}

void Session::set_only_fitting(bool only) {
  state_.explore.only_fitting = only;
  refresh_shown();
}

void Session::sort_by(std::size_t column, bool second) {
  std::vector<SortKey> keys = state_.explore.sort;
  const auto found = std::ranges::find(keys, column, &SortKey::column);
  if (found != keys.end()) {
    found->descending = !found->descending;
    if (!second) keys = {*found};
  } else {
    if (!second) keys.clear();
    keys.push_back({column, false});
  }
  set_sort(std::move(keys));
}

void Session::set_sort(std::vector<SortKey> keys) {
  if (keys == state_.explore.sort) return;
  state_.explore.sort = std::move(keys);
  refresh_shown();
}

void Session::set_table(ExploreView view) {
  state_.explore = std::move(view);
  refresh_shown();
}

void Session::want_bars(std::span<const std::uint32_t> rows) {
  std::vector<std::uint32_t> missing;
  for (const std::uint32_t row : rows) {
    if (row < state_.bars.size() && !state_.bars[row]) missing.push_back(row);
  }
  if (missing.empty() || missing == bars_asked_ || !state_.current()) return;
  bars_asked_ = missing;
  auto layouts = std::make_shared<std::vector<std::pair<std::uint32_t, Layout>>>();
  for (const std::uint32_t row : missing) {
    layouts->emplace_back(row, state_.answer.rows[row].layout);
  }
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const std::uint64_t asked = state_.asked;
  worker_.post("bars", [this, plan, layouts, asked](const Worker::Task& task) -> Worker::Apply {
    auto made = std::make_shared<std::vector<std::pair<Layout, GroupedBytes>>>();
    for (const auto& [row, layout] : *layouts) {
      if (task.stop.stop_requested()) return {};
      made->emplace_back(layout, peak_groups(*plan, layout));
    }
    return [this, made, layouts, asked] {
      if (asked != state_.asked) return;
      for (std::size_t i = 0; i < made->size(); ++i) {
        const std::uint32_t row = (*layouts)[i].first;
        const bool same =
            row < state_.answer.rows.size() && state_.answer.rows[row].layout == (*made)[i].first;
        if (same) state_.bars[row] = (*made)[i].second;
      }
    };
  });
}

void Session::simulate_best() {
  if (!state_.current() || !may_show(Workspace::explore)) return;
  if (std::exchange(steps_of_, state_.asked) != state_.asked) steps_.clear();
  const std::vector<std::uint32_t> best = rows_to_simulate(state_.answer, state_.plan);
  if (state_.simulated) {
    std::erase_if(steps_,
                  [&](const SimulatedRow& row) { return row.layout == state_.plan.layout; });
    steps_.push_back({state_.plan.layout, state_.simulated->step_time});
  }
  put_simulated(state_.answer, best, steps_);
  auto plans = std::make_shared<std::vector<Plan>>();
  for (const std::uint32_t row : best) {
    if (state_.answer.rows[row].simulated) continue;
    plans->push_back(state_.plan);
    plans->back().layout = state_.answer.rows[row].layout;
  }
  if (plans->empty()) {
    refresh_shown();
    return follow_best();
  }
  // A picture waits for all of them; a window's frames want the other cores.
  const std::size_t together = timing_ == Timing::fitting ? plans->size() : 1;
  background_.post("steps",
                   [this, plans, together, slower = predictions().slower(state_.plan),
                    asked = state_.asked](const Worker::Task& task) -> Worker::Apply {
                     std::vector<SimulatedRow> made;
                     for (std::size_t i = 0; i < plans->size(); i += together) {
                       if (task.stop.stop_requested()) return {};
                       const std::span<const Plan> some = std::span(*plans).subspan(i, together);
                       const std::vector<Seconds> steps =
                           sim::simulated_steps(some, timing_ == Timing::fitting ? 0 : 1);
                       for (std::size_t k = 0; k < some.size(); ++k) {
                         made.push_back({some[k].layout, steps[k] * slower});
                       }
                     }
                     return [this, made = std::move(made), asked] {
                       if (asked != state_.asked) return;
                       steps_.insert(steps_.end(), made.begin(), made.end());
                       put_simulated(state_.answer, rows_to_simulate(state_.answer, state_.plan),
                                     steps_);
                       refresh_shown();
                       follow_best();
                     };
                   });
}

void Session::want_fix(std::uint32_t row) {
  if (row >= state_.answer.rows.size() || !state_.current()) return;
  const Layout& layout = state_.answer.rows[row].layout;
  std::optional<RowFix>& fix = state_.exploring.fix;
  if (fix && fix->layout == layout) return;
  fix = RowFix{layout, ""};
  auto plan = std::make_shared<Plan>(state_.plan);
  plan->layout = layout;
  const Bytes usable = state_.answer.usable;
  worker_.post("fix", [this, plan, usable](const Worker::Task&) -> Worker::Apply {
    const std::optional<Fix> found =
        cheapest_fix(plan->model, plan->cluster, plan->job, plan->engine, plan->layout, usable);
    const std::string text =
        found ? to_string(*found) : "no single change of this layout and engine makes it fit";
    return [this, plan, text] {
      if (state_.exploring.fix && state_.exploring.fix->layout == plan->layout) {
        state_.exploring.fix->text = text;
      }
    };
  });
}

}  // namespace shardwise::view
