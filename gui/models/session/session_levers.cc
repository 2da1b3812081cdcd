// What would help most: searches in the background, once a panel shows them.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "answers/helpful_changes.h"
#include "answers/question_of_plan.h"
#include "gui/models/question/locks.h"
#include "gui/models/session/session.h"
#include "planner/engines/engines.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {
namespace {

/// The best layout of a question as the first of its rows.
sim::HelpfulChange as_it_is(const sim::PlanQuestion& question, const sim::PlanRow& best) {
  sim::HelpfulChange row;
  row.text = "the best layout as it is";
  row.step = best.step();
  row.estimated = !best.simulated;
  row.memory = best.candidate.cost.point;
  row.dollars_per_1e9_tokens = best.dollars_per_1e9_tokens;
  row.plan = sim::plan_of(question, best);
  return row;
}

Levers levers_of(const Plan& plan, const QuestionLimits& limits, const Predictions& by,
                 const Worker::Task& task, const sim::SayPlanning& say) {
  Levers levers;
  levers.asked = levers.known = true;
  sim::PlanQuestion question = sim::question_of(plan, 1);
  question.front = false;
  question.locks = limits.locks;
  question.opened = limits.opened;
  question.objective = limits.objective;
  const Result<sim::PlanAnswer> found = sim::answer(question);
  if (!found) {
    levers.problem = one_line(found.problems());
    return levers;
  }
  if (found->best.empty()) {
    levers.problem = "no layout fits";
    return levers;
  }
  levers.rows.push_back(as_it_is(question, found->best.front()));
  sim::Trying trying{say, engines_of_today(question.clusters.front()), task.stop};
  // A run corrects the predictions of its own engine.
  const double slower = by.slower(plan);
  if (slower != 1) trying.engines.clear();
  for (sim::HelpfulChange& each : sim::helpful_changes(question, *found, trying)) {
    levers.rows.push_back(std::move(each));
  }
  for (sim::HelpfulChange& each : levers.rows) {
    each.step = each.step * slower;
    each.dollars_per_1e9_tokens *= slower;
  }
  return levers;
}

}  // namespace

void Session::reset_levers() {
  background_.drop("levers");
  state_.exploring.levers = {};
}

void Session::keep_levers() {
  const Levers& levers = state_.exploring.levers;
  const bool begun = levers.known || !levers.trying.empty();
  // What people wait for comes first.
  if (!levers.asked || begun || background_.busy() || worker_.busy()) return;
  state_.exploring.levers.trying = "searching the best layout";
  const auto plan = std::make_shared<const Plan>(state_.plan);
  background_.post("levers",
                   [this, plan, limits = state_.exploring.limits,
                    by = predictions()](const Worker::Task& task) -> Worker::Apply {
                     const auto say = [&](const std::string& what) {
                       task.publish([this, what] { state_.exploring.levers.trying = what; });
                     };
                     const auto found =
                         std::make_shared<Levers>(levers_of(*plan, limits, by, task, say));
                     if (task.stop.stop_requested()) return {};
                     return [this, found] { state_.exploring.levers = std::move(*found); };
                   });
}

std::string Session::take_lever(std::size_t row) {
  const Levers& levers = state_.exploring.levers;
  if (row >= levers.rows.size()) {
    return levers.known ? fmt::format("row: 1 to {}", levers.rows.size())
                        : "what would help most is not known yet: panel.show levers";
  }
  Plan plan = levers.rows[row].plan;
  const bool same = plan.model == state_.plan.model && plan.cluster == state_.plan.cluster &&
                    plan.job == state_.plan.job && plan.engine == state_.plan.engine;
  if (same) {
    if (plan.layout != state_.plan.layout) drag(std::move(plan), Change::layout, "");
    return "";
  }
  KeptLimits kept = kept_limits(plan, state_.exploring.limits);
  if (!kept.dropped.empty()) say(kept.dropped);
  remember();
  go_to({std::move(plan), std::move(kept.limits), state_.correction});
  return "";
}

}  // namespace shardwise::view
