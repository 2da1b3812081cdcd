#include "gui/models/session.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "gui/models/columns.h"
#include "gui/models/explored_rows.h"
#include "planner/cost/estimate.h"
#include "planner/files/atomic_file_set.h"
#include "planner/search/search.h"
#include "planner/spec/error.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kMostUndone = 200;

/// The same question, whatever the layout.
bool same_question(const Plan& a, const Plan& b) {
  return a.model == b.model && a.cluster == b.cluster && a.job == b.job && a.engine == b.engine;
}

}  // namespace

Session::Session(Plan plan, Timing timing) : timing_(timing) {
  put(std::move(plan), Change::question);
}

void Session::collect() {
  reader_.collect();
  worker_.collect();
  background_.collect();
  if (std::exchange(rows_changed_, false)) {
    if (!state_.answer.exact) rank(state_.answer);
    refresh_shown();
  }
  keep_scaling();
}

void Session::settle() {
  while (reader_.busy() || worker_.busy() || background_.busy()) {
    reader_.finish();
    worker_.finish();
    background_.finish();
    collect();
  }
}

void Session::change(Plan plan, Change what) {
  past_.push_back({state_.plan, state_.correction});
  if (past_.size() > kMostUndone) past_.erase(past_.begin());
  future_.clear();
  put(std::move(plan), what);
}

void Session::undo() {
  if (past_.empty()) return;
  Past past = std::move(past_.back());
  past_.pop_back();
  future_.push_back({state_.plan, state_.correction});
  put(std::move(past));
}

void Session::redo() {
  if (future_.empty()) return;
  Past past = std::move(future_.back());
  future_.pop_back();
  past_.push_back({state_.plan, state_.correction});
  put(std::move(past));
}

void Session::put(Past past) {
  const bool same = same_question(past.plan, state_.plan) && past.correction == state_.correction;
  if (past.correction != state_.correction) restart_map();
  state_.correction = std::move(past.correction);
  put(std::move(past.plan), same ? Change::layout : Change::question);
}

void Session::put(Plan plan, Change what) {
  state_.plan = std::move(plan);
  drop_foreign_correction();
  state_.report = report_of(state_.plan);
  state_.sliders = what_if_sliders(state_.plan);
  if (what == Change::question) {
    ask();
  } else if (what == Change::verdict) {
    judge(state_.answer, usable_memory(state_.plan.cluster, state_.plan.job, Bytes(0)));
    ask();
  }
  ++puts_;
  show_mesh();
  simulate();
  look_around();
  explain();
  scale_up();
  compare();
  refresh_shown();
}

void Session::simulate() {
  state_.simulated.reset();
  const auto plan = std::make_shared<const Plan>(state_.plan);
  worker_.post("lanes", [this, plan](const Worker::Task&) -> Worker::Apply {
    auto lanes = std::make_shared<const StepLanes>(step_lanes(*plan));
    return [this, lanes] {
      // Another layout's step is as wide; the same part of it stays in sight.
      const double before = state_.lanes ? state_.lanes->length : 0;
      const double longer = before > 0 ? lanes->length / before : 0;
      state_.range = longer > 0 ? TimeRange{state_.range.from * longer, state_.range.to * longer}
                                : TimeRange{0, lanes->length};
      state_.lanes = lanes;
      state_.simulated = corrected(lanes->report);
    };
  });
}

void Session::look_around() {
  state_.neighbours_known = false;
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const double slower = this->slower();
  const Seconds step = state_.report.step_time / slower;
  worker_.post("neighbours", [this, plan, step, slower](const Worker::Task& task) -> Worker::Apply {
    auto bars = std::make_shared<std::vector<NeighbourBar>>(neighbour_bars(*plan, step, task.stop));
    for (NeighbourBar& bar : *bars) bar.time_gained = bar.time_gained * slower;
    return [this, bars] {
      state_.neighbours = std::move(*bars);
      state_.neighbours_known = true;
    };
  });
}

void Session::explain() {
  state_.explained.reset();
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const std::shared_ptr<const Correction> correction = state_.correction;
  worker_.post("explained", [this, plan, correction](const Worker::Task&) -> Worker::Apply {
    auto report = std::make_shared<StepReport>(estimate(
        plan->model, plan->cluster, plan->job, plan->engine, plan->layout, Detail::explained));
    if (correction) correct(*report, *correction);
    return [this, report] { state_.explained = report; };
  });
}

void Session::set_workspace(Workspace workspace) {
  state_.workspace = workspace;
  show_mesh();
  scale_up();
}

void Session::find_winner() {
  const Answer& answer = state_.answer;
  if (!state_.current() || answer.ranked.empty() ||
      answer.rows[answer.ranked.front()].fit != Fit::fits) {
    state_.winner.reset();
    return;
  }
  Plan plan = state_.plan;
  plan.layout = answer.rows[answer.ranked.front()].layout;
  const bool known =
      state_.winner && state_.winner->layout == plan.layout && winner_of_ == state_.asked;
  if (known) return;
  winner_of_ = state_.asked;
  state_.winner = report_of(plan);
}

void Session::take_neighbour(std::size_t place) {
  if (place >= state_.neighbours.size() || !state_.neighbours_known) return;
  Plan plan = state_.plan;
  plan.layout = state_.neighbours[place].layout;
  change(std::move(plan), Change::layout);
}

void Session::ask() {
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const auto report = std::make_shared<const StepReport>(
      estimate(plan->model, plan->cluster, plan->job, plan->engine, plan->layout));
  state_.asked = worker_.post("rows", [this, plan, report, timing = timing_, slower = slower(),
                                       known = known_](const Worker::Task& task) {
    RowListener listener;
    listener.priced = [&](Answer found) {
      slow_down(found, slower);
      const auto answer = std::make_shared<Answer>(std::move(found));
      task.publish([this, answer] { take(std::move(*answer)); });
    };
    listener.timed = [&](std::vector<TimedRow> rows) {
      for (TimedRow& row : rows) row.time = row.time * slower;
      task.publish([this, rows = std::move(rows)] {
        apply(state_.answer, rows);
        rows_changed_ = true;
      });
    };
    listener.ranked = [&](RankedRows found) {
      const auto ranked = std::make_shared<RankedRows>(std::move(found));
      task.publish([this, ranked] {
        apply(state_.answer, std::move(*ranked));
        rows_changed_ = true;
      });
    };
    explore_rows(*plan, *report, task.stop, listener, timing, known);
    return Worker::Apply();
  });
}

void Session::take(Answer answer) {
  state_.answer = std::move(answer);
  state_.answer.generation = state_.asked;
  state_.bars.assign(state_.answer.rows.size(), std::nullopt);
  bars_asked_.clear();
  rows_changed_ = true;
}

void Session::refresh_shown() {
  Answer& answer = state_.answer;
  state_.selected = find_row(answer, state_.plan.layout);
  const bool listed = state_.selected < answer.rows.size() && !answer.rows[state_.selected].typed;
  if (!listed && state_.current()) {
    state_.selected = put_typed(answer, state_.plan.layout, state_.report);
    state_.bars.resize(answer.rows.size());
    state_.bars[state_.selected].reset();
    bars_asked_.clear();
  }
  find_winner();
  state_.shown = shown_rows(answer, state_.explore);
}

void Session::select_row(std::size_t row) {
  if (row >= state_.answer.rows.size() || !state_.current()) return;
  Plan plan = state_.plan;
  plan.layout = state_.answer.rows[row].layout;
  if (plan.layout != state_.plan.layout) change(std::move(plan), Change::layout);
}

void Session::move_selection(int rows) {
  if (state_.shown.empty()) return;
  const auto found = std::ranges::find(state_.shown, state_.selected);
  std::ptrdiff_t at = found == state_.shown.end() ? -1 : found - state_.shown.begin();
  at = std::clamp<std::ptrdiff_t>(at + rows, 0,
                                  static_cast<std::ptrdiff_t>(state_.shown.size()) - 1);
  select_row(state_.shown[static_cast<std::size_t>(at)]);
}

void Session::slide(const std::string& id, std::size_t step) {
  for (const SliderSection& section : state_.sliders) {
    for (const Slider& slider : section.sliders) {
      if (slider.id != id || step >= slider.steps.size() || step == slider.at) continue;
      std::optional<Plan> plan = with_slider(state_.plan, slider, slider.steps[step]);
      if (plan) change(*std::move(plan), slider.change);
      return;
    }
  }
}

void Session::set_filter(const std::string& text) {
  state_.explore.filter_text = text;
  state_.explore.parsed = parse_filter(text);
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

void Session::open_palette(std::string typed) {
  state_.palette_open = true;
  state_.palette_text = std::move(typed);
  ++state_.palette_opened;
}

std::string Session::save_csv(const std::string& path) {
  return save(path, rows_csv(state_.answer, state_.shown));
}

std::string Session::save_plan(const std::string& path) { return save(path, to_json(state_.plan)); }

std::string Session::save(const std::string& path, const std::string& text) {
  try {
    write_file(path, text);
  } catch (const IoError& error) {
    return error.what();
  }
  say("wrote " + path);
  return "";
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
      made->emplace_back(layout, peak_groups(estimate(plan->model, plan->cluster, plan->job,
                                                      plan->engine, layout)));
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

}  // namespace shardwise::view
