// The scaling workspace: a map of best layouts, searched in the background.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "gui/models/session/session.h"
#include "planner/legality/legality.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {

void Session::scale_up() {
  ScalingState& scaling = state_.scaling;
  if (state_.workspace != Workspace::scaling) return;
  if (scaled_ != state_.asked) {
    scaled_ = state_.asked;
    const std::optional<std::size_t> cell = find_cell(scaling.map, state_.plan);
    if (cell) {
      scaling.map.row = *cell / scaling.map.gpus.size();
      scaling.map.column = *cell % scaling.map.gpus.size();
    } else {
      restart_map();
    }
  }
  keep_scaling();
}

void Session::restart_map() {
  state_.scaling.map = {};
  background_.drop("scaling");
}

void Session::keep_scaling() {
  const ScalingState& scaling = state_.scaling;
  const bool shown = state_.workspace == Workspace::scaling && scaled_ == state_.asked;
  // What people wait for comes first.
  if (!shown || background_.busy() || worker_.busy()) return;
  if (!scaling.map.plan) return make_map();
  const std::optional<std::size_t> next = scaling.map.next();
  if (next && !scaling.paused) search_cell(*next);
}

void Session::make_map() {
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const ScalingRows rows = state_.scaling.rows;
  background_.post("scaling", [this, plan, rows](const Worker::Task&) -> Worker::Apply {
    const auto map = std::make_shared<ScalingMap>(scaling_map(plan, rows));
    return [this, map] { state_.scaling.map = std::move(*map); };
  });
}

void Session::search_cell(std::size_t cell) {
  const auto question = std::make_shared<const Plan>(plan_of_cell(state_.scaling.map, cell));
  background_.post("scaling",
                   [this, question, cell, known = known_, slower = predictions().slower(*question)](
                       const Worker::Task& task) -> Worker::Apply {
                     std::optional<ScalingPoint> point = searched(*question, known, task.stop);
                     if (!point) return {};
                     slow_down(*point, slower);
                     return [this, point, cell] { state_.scaling.map.cells[cell] = *point; };
                   });
}

void Session::set_scaling_rows(ScalingRows rows) {
  if (rows == state_.scaling.rows) return;
  state_.scaling.rows = rows;
  restart_map();
  keep_scaling();
}

void Session::pause_scaling(bool paused) {
  state_.scaling.paused = paused;
  if (paused) background_.drop("scaling");
  keep_scaling();
}

std::string Session::save_scaling(const std::string& path) {
  if (state_.scaling.map.known() == 0) return "nothing is searched yet: open the scaling workspace";
  return save(path, scaling_csv(state_.scaling.map));
}

std::string Session::take_scaling(std::int64_t gpus, const std::string& row) {
  const ScalingMap& map = state_.scaling.map;
  if (!map.plan) return "nothing is searched yet: open the scaling workspace";
  std::vector<std::string> values;
  for (const ScalingRow& each : map.rows) values.push_back(each.value);
  const auto in_row = static_cast<std::size_t>(
      row.empty() ? std::ptrdiff_t(map.row) : std::ranges::find(values, row) - values.begin());
  const auto column =
      static_cast<std::size_t>(std::ranges::find(map.gpus, gpus) - map.gpus.begin());
  if (in_row >= map.rows.size()) return "the map has no row " + row;
  if (column >= map.gpus.size() || !map.at(in_row, column).layout) {
    return "no layout is known on that many GPUs";
  }
  Plan plan = plan_of_cell(map, in_row * map.gpus.size() + column);
  const Diagnostics problems = check_plan(plan);
  if (!problems.empty()) return one_line(problems);
  change(std::move(plan), Change::question);
  return "";
}

}  // namespace shardwise::view
