// The question beside its sliders: what is listed, the menus, why not.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "answers/plan_answer.h"
#include "answers/plan_words.h"
#include "answers/question_of_plan.h"
#include "answers/why_not_text.h"
#include "gui/models/question/choices.h"
#include "gui/models/question/locks.h"
#include "gui/models/question/subject_model.h"
#include "gui/models/session/session.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/question/catalogue_summary.h"
#include "planner/question/field_values.h"
#include "planner/score/published.h"
#include "planner/search/advice/why_not.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kNearest = 5;  // published rows of each quantity

template <class Summary>
std::vector<Choice> choices(const std::vector<Summary>& summaries) {
  std::vector<Choice> found;
  for (const Summary& each : summaries) found.push_back({each.name, line_of(each)});
  return found;
}

/// What to say where nothing fits the plan's engine: the cheapest change with it, or else with any
/// engine of `shardwise plan`.
std::string way_out_of(const Plan& plan) {
  sim::PlanQuestion question = sim::question_of(plan, 1);
  question.front = question.simulate = false;
  const Result<sim::PlanAnswer> own = sim::answer(question);
  if (!own) return one_line(own.problems());
  if (!own->best.empty())
    return "Only layouts that fit are outside what is listed: take a lock away";
  const std::string nothing =
      fmt::format("{} ({} alone)", sim::nothing_fits_words(*own), plan.engine.name);
  const auto change = [&](const sim::PlanAnswer& answer) {
    return fmt::format("{}. Cheapest change: {}", nothing, sim::way_out_words(answer.nothing));
  };
  if (own->nothing.way_out) return change(*own);
  question.engines = engines_of_today(question.clusters.front());
  const Result<sim::PlanAnswer> all = sim::answer(question);
  if (!all) return change(*own);
  if (!all->best.empty()) {
    return fmt::format("{}. It fits with engine {}", nothing, all->best.front().engine);
  }
  return all->nothing.way_out || all->nothing.more_gpus
             ? change(*all)
             : nothing + ". No single change makes it fit with any engine";
}

}  // namespace

void Session::set_limits(QuestionLimits limits) {
  if (limits == state_.exploring.limits) return;
  remember();
  Plan plan = state_.plan;
  go_to({std::move(plan), std::move(limits), state_.correction});
}

std::string Session::toggle_lock(const std::string& field, const std::string& value) {
  QuestionLimits limits = state_.exploring.limits;
  const std::string* const locked = limits.lock_of(field);
  const bool off = locked != nullptr && (value.empty() || value == *locked);
  std::erase_if(limits.locks, [&](const auto& each) { return each.first == field; });
  if (!off) {
    if (std::ranges::find(layout_keys(), field) == layout_keys().end()) {
      return unknown_word(field, "field of a layout", layout_keys());
    }
    limits.locks.emplace_back(field, value.empty() ? field_text(state_.plan.layout, field) : value);
    std::string problem = problem_of(state_.plan, limits);
    if (!problem.empty()) return problem;
  }
  set_limits(std::move(limits));
  return "";
}

std::string Session::toggle_open(const std::string& field) {
  QuestionLimits limits = state_.exploring.limits;
  if (std::erase(limits.opened, field) == 0) {
    limits.opened.push_back(field);
    std::string problem = problem_of(state_.plan, limits);
    if (!problem.empty()) return problem;
  }
  set_limits(std::move(limits));
  return "";
}

void Session::set_objective(Objective objective) {
  QuestionLimits limits = state_.exploring.limits;
  limits.objective = objective;
  set_limits(std::move(limits));
  put_simulated(state_.answer, {}, {});  // others are the best
  refresh_shown();
}

std::string Session::take_subject(Result<Plan> plan) {
  if (!plan) return one_line(plan.problems());
  KeptLimits kept = kept_limits(*plan, state_.exploring.limits);
  if (!kept.dropped.empty()) say(kept.dropped);
  remember();
  go_to({*std::move(plan), std::move(kept.limits), state_.correction});
  follows_ = state_.asked;
  return "";
}

std::string Session::take_model(const std::string& name) {
  return take_subject(with_named_model(state_.plan, name));
}

std::string Session::take_cluster(const std::string& name) {
  return take_subject(with_named_cluster(state_.plan, name));
}

std::string Session::take_engine(const std::string& name) {
  return take_subject(with_named_engine(state_.plan, name));
}

void Session::follow_best() {
  if (follows_ != state_.asked || !state_.current()) return;
  follows_ = 0;
  const Answer& answer = state_.answer;
  if (answer.ranked.empty()) return;
  Plan plan = state_.plan;
  plan.layout = answer.rows[answer.ranked.front()].layout;
  if (plan.layout != state_.plan.layout) put(std::move(plan), Change::layout);
}

std::string Session::ask_why(const std::string& values) {
  TypedWhy& why = state_.exploring.why;
  why = {};
  if (values.empty()) return show_panel("why");
  if (!state_.winner) return "no layout fits to compare with";
  std::string text = values;
  std::ranges::replace(text, ' ', ',');
  const Result<FieldValues> read = read_values(text, "why not");
  if (!read) return one_line(read.problems());
  Layout probe = state_.plan.layout;
  for (const auto& [field, value] : *read) {
    std::string problem = set_field(probe, field, value);
    if (!problem.empty()) return problem;
  }
  why.asked = text;
  show_panel("why");
  auto plan = std::make_shared<Plan>(state_.plan);
  plan->layout = state_.winner->layout;
  worker_.post(
      "why",
      [this, plan, text, asked = *read, by = predictions(),
       limits = state_.exploring.limits](const Worker::Task& task) -> Worker::Apply {
        SearchRequest request = request_of(*plan, limits);
        request.locks.clear();  // the values are asked of all layouts
        request.stop = task.stop;
        Candidate winner;
        winner.layout = plan->layout;
        winner.cost = evaluate(plan->model, plan->cluster, plan->job, plan->engine, plan->layout);
        Result<WhyNot> found = why_not(request, winner, asked);
        if (found && !found->other.stages.empty()) {
          found->winner = by.corrected(std::move(found->winner), *plan);
          found->other = by.corrected(std::move(found->other), *plan);
        }
        auto answer = std::make_shared<TypedWhy>();
        answer->asked = text;
        answer->text = found ? sim::why_not_text(*found, asked, false) : one_line(found.problems());
        const bool other =
            found &&
            (found->answer == WhyNot::Answer::slower ||
             (found->answer == WhyNot::Answer::does_not_fit && !found->other.stages.empty()));
        if (other) answer->other = found->other;
        return [this, answer] {
          if (state_.exploring.why.asked == answer->asked) state_.exploring.why = *answer;
        };
      });
  return "";
}

void Session::want_catalogue() {
  if (state_.exploring.catalogue.known) return;
  state_.exploring.catalogue.known = true;
  worker_.post("catalogue", [this](const Worker::Task&) -> Worker::Apply {
    auto catalogue = std::make_shared<Catalogue>();
    catalogue->known = true;
    catalogue->models = choices(model_summaries());
    catalogue->clusters = choices(cluster_summaries());
    for (const EngineSummary& each : engine_summaries()) {
      catalogue->engines.push_back({each.engine->name, line_of(each)});
    }
    return [this, catalogue] { state_.exploring.catalogue = std::move(*catalogue); };
  });
}

void Session::find_published() {
  ExploreState& exploring = state_.exploring;
  if (exploring.published) {
    exploring.nearest = nearest_measured(state_.plan, *exploring.published, kNearest);
    return;
  }
  worker_.post("published", [this](const Worker::Task&) -> Worker::Apply {
    auto all = std::make_shared<const std::vector<PublishedFigure>>(published_figures());
    return [this, all] {
      state_.exploring.published = all;
      find_published();
    };
  });
}

void Session::find_way_out() {
  if (state_.answer.counts.fit > 0 || !state_.answer.problem.empty()) return;
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const std::uint64_t asked = state_.asked;
  worker_.post("way out", [this, plan, asked](const Worker::Task&) -> Worker::Apply {
    return [this, words = way_out_of(*plan), asked] {
      if (state_.asked == asked) state_.exploring.way_out = words;
    };
  });
}

void Session::toggle_pin() {
  std::optional<Baseline>& pinned = state_.exploring.pinned;
  if (pinned) {
    pinned.reset();
  } else {
    pinned = Baseline{state_.report, state_.simulated};
  }
}

}  // namespace shardwise::view
