#include "planner/score/published.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "planner/model/parameter_counts.h"
#include "planner/score/predict.h"
#include "planner/score/rows/row.h"
#include "planner/score/statistics.h"

namespace shardwise {
namespace {

std::optional<double> error(std::optional<double> predicted, std::optional<double> measured) {
  if (!predicted || !measured || !(*measured > 0)) return std::nullopt;
  return (*predicted - *measured) / *measured;
}

double doublings(double a, double b) { return std::abs(std::log2(a / b)); }

}  // namespace

std::vector<PublishedFigure> published_figures() {
  const Result<std::vector<Row>> rows = read_rows(published_rows(), "examples/public.jsonl");
  std::vector<PublishedFigure> figures;
  RowPredictor predictor;
  for (const Row& row : *rows) {
    if (row.quality != "A" && row.quality != "B") continue;
    const RowPrediction predicted = predictor.predict(row);
    if (!predicted.notes.refused.empty()) continue;
    PublishedFigure figure;
    figure.id = row.id;
    figure.model = row.model.name;
    figure.framework = row.framework;
    figure.gpu = predicted.cluster->gpu.name;
    figure.engine = predicted.engine->name;
    figure.gpus = predicted.variants.front().layout.world();
    figure.parameters = static_cast<double>(count_parameters(predicted.model).main_model());
    figure.experts = predicted.model.num_experts > 0;
    figure.adapters = predicted.variants.front().job.frozen_base;
    figure.memory_error = error(predicted.memory_gib, row.measured.memory_gib);
    figure.time_error = error(predicted.step_time_s, predicted.measured_time_s);
    if (figure.memory_error || figure.time_error) figures.push_back(std::move(figure));
  }
  return figures;
}

double distance(const Plan& plan, const PublishedFigure& figure) {
  // Weights say how many doublings of the model another GPU or engine is worth.
  constexpr double kOtherGpu = 2;
  constexpr double kOtherEngine = 1.5;
  constexpr double kOtherKind = 3;
  constexpr double kGpuDoubling = 0.5;
  const auto parameters = static_cast<double>(count_parameters(plan.model).main_model());
  double far = doublings(parameters, figure.parameters);
  far += kGpuDoubling *
         doublings(static_cast<double>(plan.layout.world()), static_cast<double>(figure.gpus));
  if (figure.gpu != plan.cluster.gpu.name) far += kOtherGpu;
  if (figure.engine != plan.engine.name) far += kOtherEngine;
  if (figure.experts != (plan.model.num_experts > 0)) far += kOtherKind;
  if (figure.adapters != plan.job.frozen_base) far += kOtherKind;
  return far;
}

std::vector<PublishedFigure> nearest_figures(const Plan& plan,
                                             std::span<const PublishedFigure> figures,
                                             std::size_t most) {
  std::vector<std::pair<double, const PublishedFigure*>> ordered;
  for (const PublishedFigure& each : figures) ordered.emplace_back(distance(plan, each), &each);
  std::ranges::stable_sort(ordered, {}, &std::pair<double, const PublishedFigure*>::first);
  std::vector<PublishedFigure> nearest;
  for (const auto& [far, figure] : ordered) {
    if (nearest.size() == most) break;
    nearest.push_back(*figure);
  }
  return nearest;
}

std::vector<PublishedFigure> nearest_measured(const Plan& plan,
                                              std::span<const PublishedFigure> figures,
                                              std::size_t each) {
  std::vector<PublishedFigure> kept;
  for (const auto of : {&PublishedFigure::time_error, &PublishedFigure::memory_error}) {
    std::vector<PublishedFigure> some;
    std::ranges::copy_if(figures, std::back_inserter(some),
                         [&](const PublishedFigure& figure) { return (figure.*of).has_value(); });
    for (PublishedFigure& figure : nearest_figures(plan, some, each)) {
      const bool known = std::ranges::find(kept, figure.id, &PublishedFigure::id) != kept.end();
      if (!known) kept.push_back(std::move(figure));
    }
  }
  return nearest_figures(plan, kept, kept.size());
}

TypicalErrors typical_errors(std::span<const PublishedFigure> figures) {
  const auto median = [&](std::optional<double> PublishedFigure::*of) -> std::optional<double> {
    std::vector<double> sizes;
    for (const PublishedFigure& each : figures) {
      if (each.*of) sizes.push_back(std::abs(*(each.*of)));
    }
    if (sizes.empty()) return std::nullopt;
    return quantile(std::move(sizes), 0.5);
  };
  return {median(&PublishedFigure::memory_error), median(&PublishedFigure::time_error)};
}

}  // namespace shardwise
