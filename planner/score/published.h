#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/plan/plan.h"

namespace shardwise {

/// A published measurement with what was predicted for it, by what makes it like a question.
struct PublishedFigure {
  std::string id;         // "torchtitan/…"
  std::string model;      // as its source calls it
  std::string framework;  // the same
  std::string gpu;        // of the catalogue
  std::string engine;     // that it was predicted with
  std::int64_t gpus = 0;
  double parameters = 0;
  bool experts = false;
  bool adapters = false;               // only they were trained
  std::optional<double> memory_error;  // (predicted - measured) / measured
  std::optional<double> time_error;    // of the step, by the step-time model
};

/// The rows that come with the program (examples/public.jsonl), each with its errors; those that
/// cannot be predicted or have nothing to compare are left out.
std::vector<PublishedFigure> published_figures();

/// How unlike a question a row is: doublings of parameters and GPUs, another GPU, engine or kind of
/// model. 0 is the same in all of these.
double distance(const Plan& plan, const PublishedFigure& figure);

/// The `most` figures nearest to a plan's model, cluster and engine, nearest first.
std::vector<PublishedFigure> nearest_figures(const Plan& plan,
                                             std::span<const PublishedFigure> figures,
                                             std::size_t most);

/// The nearest rows of each quantity, `each` of those whose time was measured and of those whose
/// memory was, nearest first.
std::vector<PublishedFigure> nearest_measured(const Plan& plan,
                                              std::span<const PublishedFigure> figures,
                                              std::size_t each);

/// Medians of the sizes of errors; nothing where no figure has one.
struct TypicalErrors {
  std::optional<double> memory;
  std::optional<double> time;
};
TypicalErrors typical_errors(std::span<const PublishedFigure> figures);

/// The text of examples/public.jsonl, built in so that no file is needed.
std::string_view published_rows();

}  // namespace shardwise
