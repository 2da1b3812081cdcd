#include "gui/models/session/session.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "gui/models/explore/explored_rows.h"
#include "gui/models/window/explain_model.h"
#include "planner/search/advice/faster_links.h"
#include "planner/search/search.h"

namespace shardwise::view {

Session::Session(Plan plan, Timing timing, std::optional<Workspace> only)
    : timing_(timing), only_(only) {
  put(std::move(plan), Change::question);
}

void Session::collect() {
  reader_.collect();
  worker_.collect();
  background_.collect();
  if (std::exchange(rows_changed_, false)) {
    const bool ranked = std::exchange(ranked_, false);
    if (!ranked && !state_.answer.exact) rank(state_.answer);
    refresh_shown();
    if (ranked) {
      simulate_best();
      find_way_out();
    }
  }
  keep_scaling();
  keep_levers();
}

void Session::settle() {
  while (reader_.busy() || worker_.busy() || background_.busy()) {
    reader_.finish();
    worker_.finish_one();
    if (!worker_.busy()) background_.finish_one();
    collect();
  }
}

void Session::put(Plan plan, Change what) {
  if (plan.layout != state_.plan.layout) ++state_.exploring.moves;
  if (what == Change::layout) follows_ = 0;  // people have chosen another
  if (what == Change::question) state_.exploring.why = {};
  if (what != Change::layout) {
    state_.exploring.way_out.clear();
    reset_levers();
  }
  state_.plan = std::move(plan);
  drop_foreign_correction();
  state_.report = predictions().report(state_.plan);
  state_.sliders = what_if_sliders(state_.plan);
  // Of a picture the selected step comes first: then the table need not have it simulated again.
  if (timing_ == Timing::fitting) simulate();
  if (what == Change::question) {
    ask();
    if (state_.start_open) follows_ = state_.asked;  // people have chosen no layout
  } else if (what == Change::verdict) {
    judge(state_.answer, usable_memory(state_.plan.cluster, state_.plan.job, Bytes(0)));
    if (!state_.answer.exact || !state_.current()) {
      ask();
    } else {
      simulate_best();
    }
  } else if (what == Change::dollars) {
    price(state_.answer, state_.report);
  }
  ++puts_;
  state_.mesh.stretch.curves.clear();
  state_.mesh.stretch.factors.resize(reached_tiers(state_.plan.cluster), 1);
  show_mesh();
  if (timing_ == Timing::all) simulate();
  look_around();
  state_.explained.reset();
  explain();
  find_published();
  scale_up();
  compare();
  refresh_shown();
}

void Session::on_result(const std::function<void()>& wake) {
  for (Worker* const each : {&worker_, &background_, &reader_}) each->on_result(wake);
}

void Session::look_around() {
  state_.neighbours_known = false;
  if (!may_show(Workspace::explore)) return;
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const double slower = predictions().slower(*plan);
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
  const auto plan = std::make_shared<const Plan>(state_.plan);
  worker_.post("explained",
               [this, plan, by = predictions(),
                simulated = state_.simulated](const Worker::Task&) -> Worker::Apply {
                 const StepReport estimated = by.report(*plan, Detail::explained);
                 auto report = std::make_shared<const StepReport>(
                     with_reasons(simulated ? *simulated : estimated, estimated, *plan));
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
  const std::optional<std::uint32_t> best = best_by_model(answer);
  if (!state_.current() || !best || answer.rows[*best].fit != Fit::fits) {
    state_.winner.reset();
    return;
  }
  Plan plan = state_.plan;
  plan.layout = answer.rows[*best].layout;
  const bool known =
      state_.winner && state_.winner->layout == plan.layout && winner_of_ == state_.asked;
  if (known) return;
  winner_of_ = state_.asked;
  state_.winner = predictions().report(plan);
}

void Session::take_neighbour(std::size_t place) {
  if (place >= state_.neighbours.size() || !state_.neighbours_known) return;
  Plan plan = state_.plan;
  plan.layout = state_.neighbours[place].layout;
  drag(std::move(plan), Change::layout, "");
}

void Session::ask() {
  const auto plan = std::make_shared<const Plan>(state_.plan);
  // As the planner has it: the rows are slowed down once they are known.
  const auto report = std::make_shared<const StepReport>(Predictions().report(*plan));
  state_.asked = worker_.post(
      "rows", [this, plan, report, timing = timing_, slower = predictions().slower(*plan),
               known = known_, limits = state_.exploring.limits](const Worker::Task& task) {
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
            rows_changed_ = ranked_ = true;
          });
        };
        explore_rows(*plan, *report, task.stop, listener, timing, known, limits);
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
  if (listed && state_.current() && answer.rows[state_.selected].bound) {
    apply(answer, {{static_cast<std::uint32_t>(state_.selected), state_.report.step_time}});
    rank(answer);
  }
  if (!listed && state_.current()) {
    state_.selected = put_typed(answer, state_.plan.layout, state_.report);
    state_.bars.resize(answer.rows.size());
    state_.bars[state_.selected].reset();
    bars_asked_.clear();
  }
  if (state_.exploring.ghost) {
    Ghost& ghost = *state_.exploring.ghost;
    ghost.row =
        ghost.same_question ? find_row(answer, ghost.numbers.estimated.layout) : answer.rows.size();
  }
  find_winner();
  state_.shown = shown_rows(answer, state_.explore);
  state_.cloud = trade_cloud(answer, state_.shown);
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

void Session::open_palette(std::string typed) {
  state_.palette_open = true;
  state_.palette_text = std::move(typed);
  ++state_.palette_opened;
}

}  // namespace shardwise::view
