#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "gui/models/compare/compare_model.h"
#include "gui/models/session/session.h"
#include "planner/question/subject.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {

void Session::set_correction(std::shared_ptr<const Correction> correction) {
  if (correction == state_.correction) return;
  state_.correction = std::move(correction);
  // Numbers of other predictions cannot be compared with these.
  state_.exploring.pinned.reset();
  restart_map();
}

void Session::drop_foreign_correction() {
  if (!predictions().corrects(state_.plan.model, state_.plan.engine)) set_correction(nullptr);
}

void Session::compare_with(std::shared_ptr<const Compared> other) {
  state_.compare.other = std::move(other);
  files_.read("of compare.open", state_.compare.other ? state_.compare.other->file : "");
  state_.compare.shown = true;
  state_.compare.row = 0;
  state_.compare.looked_at.clear();
  state_.compare.own.reset();
  compare();
}

void Session::compare_by(CompareBy by) {
  state_.compare.by = by;
  state_.compare.row = 0;
  state_.compare.looked_at.clear();
}

void Session::compare() {
  state_.compare.view.reset();
  const std::shared_ptr<const Compared> other = state_.compare.other;
  if (!other) return worker_.drop("compare");
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const auto report = std::make_shared<const StepReport>(state_.report);
  worker_.post(
      "compare",
      [this, plan, report, other, by = predictions()](const Worker::Task&) -> Worker::Apply {
        auto view = std::make_shared<const CompareView>(compare_view(*plan, *report, *other, by));
        return [this, view] { state_.compare.view = view; };
      });
}

std::string Session::calibrate() {
  const Compared* const other = state_.compare.other.get();
  if (other == nullptr) return "open a measured run first (compare.open FILE)";
  StepReport measured = other->report;
  measured.origin = other->measured() ? "measured" : "predicted";
  if (other->run) {
    // A trace says neither model nor layout: it is of a run of this plan.
    const std::string& digested = measured.plan_digest;
    if (!digested.empty() && digested != digest(state_.plan)) {
      return one_line({{other->file, 0, 0, "/otherData/plan_digest", "of another plan",
                        "open the plan of that run, or give its report"}});
    }
    measured.model = state_.plan.model.name;
    measured.engine = state_.plan.engine.name;
    measured.cluster = state_.plan.cluster.name;
    measured.layout = state_.plan.layout;
    measured.global_batch_size = state_.plan.job.global_batch_size;
    measured.sequence_length = state_.plan.job.sequence_length;
  }
  Subject subject;
  subject.model = state_.plan.model;
  subject.cluster = state_.plan.cluster;
  subject.job = state_.plan.job;
  subject.engine = state_.plan.engine;
  Result<Correction> correction = correction_by(measured, other->file, subject);
  if (!correction) return one_line(correction.problems());
  remember();
  set_correction(std::make_shared<const Correction>(*std::move(correction)));
  put(state_.plan, Change::question);
  return "";
}

std::string Session::look_at(std::size_t row) {
  const CompareView* const view = state_.compare.view.get();
  if (view == nullptr) return "nothing is compared";
  const std::vector<CompareRow>& rows = view->rows[static_cast<std::size_t>(state_.compare.by)];
  if (rows.empty()) return "nothing differs";
  if (row >= rows.size()) return "the list has no such row";
  state_.compare.row = row;
  state_.compare.looked_at = rows[row].operation.empty() ? rows[row].name : rows[row].operation;
  const StepLanes* const lanes = state_.lanes.get();
  const TimeRange found{rows[row].from, rows[row].to};
  const bool simulated = lanes != nullptr && lanes->simulated;
  say(look_text(*view, state_.compare.by, row, simulated));
  if (!simulated || found.length() <= 0) return "";
  set_workspace(Workspace::timeline);
  constexpr double kAround = 12;  // times the operation: what is around it
  const double middle = (found.from + found.to) / 2;
  const double wanted = std::min(lanes->length, kAround * found.length());
  const double from = std::clamp(middle - wanted / 2, 0.0, lanes->length - wanted);
  set_range({from, from + wanted});
  return "";
}

}  // namespace shardwise::view
