#include "planner/export/plan_fit.h"

#include <fmt/format.h>

#include <utility>

#include "planner/estimate/estimate.h"
#include "planner/export/export_plan.h"
#include "planner/export/told_change.h"
#include "planner/question/advice.h"
#include "planner/spec/report/verdict_words.h"

namespace shardwise {
namespace {

/// What makes the plan fit: what the framework can be told before what it cannot.
std::string change_of(const Plan& plan, const Framework& framework, Bytes usable) {
  const auto changed = [&](const Layout& layout) {
    Plan other = plan;
    other.layout = layout;
    return other;
  };
  const auto is_told = [&](const Layout& layout) {
    return told_as_it_is(framework, changed(layout)).has_value();
  };
  const Advice told =
      advice(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, usable, is_told);
  if (!told.text.empty()) {
    const std::string settings = told_change(framework, plan, changed(told.layout));
    return told.text + (settings.empty() ? "" : fmt::format(" ({})", settings));
  }
  const Advice any = advice(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, usable);
  if (any.text.empty()) return "no three changes make it fit, nor 256 times the GPUs";
  return fmt::format("none that {} can be told; in another framework {}", framework.label,
                     any.text);
}

}  // namespace

std::string PlanFit::line() const {
  return change.empty() ? words : fmt::format("{}; cheapest change: {}", words, change);
}

PlanFit plan_fit(const Plan& plan, const Framework& framework) {
  PlanFit fit;
  fit.report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  fit.words = verdict_words(fit.report);
  if (fit.fits()) return fit;
  fit.change = change_of(plan, framework, fit.report.verdict.usable);
  fit.report.verdict.cheapest_fix = fit.change;
  return fit;
}

}  // namespace shardwise
