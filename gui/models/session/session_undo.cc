// What was changed, and the way back.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "gui/models/session/session.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kMostUndone = 200;

/// The same question, whatever the layout.
bool same_question(const Plan& a, const Plan& b) {
  return a.model == b.model && a.cluster == b.cluster && a.job == b.job && a.engine == b.engine;
}

}  // namespace

void Session::remember() {
  past_.push_back({state_.plan, state_.exploring.limits, state_.correction});
  if (past_.size() > kMostUndone) past_.erase(past_.begin());
  future_.clear();
}

void Session::change(Plan plan, Change what) {
  remember();
  dragged_.clear();
  state_.exploring.ghost.reset();
  put(std::move(plan), what);
}

void Session::drag(Plan plan, Change what, const std::string& field) {
  std::optional<Ghost>& ghost = state_.exploring.ghost;
  const bool goes_on = held_ && !field.empty() && dragged_ == field;
  if (!goes_on) {
    remember();
    ghost = Ghost{{state_.report, state_.simulated}, 0, true};
  }
  dragged_ = held_ ? field : "";
  ghost->same_question = same_question(plan, past_.back().plan);
  if (ghost->same_question && plan.layout == ghost->numbers.estimated.layout) {
    // Back where it was: nothing happened.
    past_.pop_back();
    dragged_.clear();
    ghost.reset();
  }
  put(std::move(plan), what);
}

void Session::hold_pointer(bool held) {
  held_ = held;
  if (!held) dragged_.clear();
}

void Session::undo() {
  if (past_.empty()) return;
  Past past = std::move(past_.back());
  past_.pop_back();
  future_.push_back({state_.plan, state_.exploring.limits, state_.correction});
  go_to(std::move(past));
}

void Session::redo() {
  if (future_.empty()) return;
  Past past = std::move(future_.back());
  future_.pop_back();
  past_.push_back({state_.plan, state_.exploring.limits, state_.correction});
  go_to(std::move(past));
}

void Session::go_to(Past past) {
  dragged_.clear();
  ExploreState& exploring = state_.exploring;
  exploring.ghost.reset();
  const bool same = same_question(past.plan, state_.plan) &&
                    past.limits.same_rows(exploring.limits) && past.correction == state_.correction;
  if (past.limits != exploring.limits || past.correction != state_.correction) reset_levers();
  set_correction(std::move(past.correction));
  exploring.limits = std::move(past.limits);
  state_.answer.objective = exploring.limits.objective;
  put(std::move(past.plan), same ? Change::layout : Change::question);
}

}  // namespace shardwise::view
