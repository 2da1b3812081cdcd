#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/score/published.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// Why a number is what it is.
struct WhyNumber {
  std::string subject;  // "time.bubble"
  std::string formula;
  std::string values;
  std::string source;
};

/// The numbers that are shown, with the reasons of an explained estimate of the same plan. Where
/// the step is simulated, rates are explained by it, and its parts stand beside those of the
/// step-time model.
StepReport with_reasons(StepReport shown, const StepReport& explained, const Plan& plan);

/// Reason of a tile of the summary: "step", "mfu", "memory" … Never empty.
/// \pre the report has its explanations
WhyNumber why_tile(const StepReport& report, std::string_view tile);

/// Why the numbers of a subject are what they are: "tile.mfu", "column.step", "field.tp",
/// "memory.pass.weights", "memory.working", "neighbour", "question", "panel.mesh". Of what it does
/// not know, an empty formula.
WhyNumber why_subject(const StepReport& report, std::string_view subject);

/// The published rows nearest to the question, each with the errors of its prediction.
std::vector<WhyNumber> why_published(std::span<const PublishedFigure> nearest);

/// Every explanation of the report whose subject has `words` in it, then its assumptions.
std::vector<WhyNumber> why_numbers(const StepReport& report, std::string_view words);

}  // namespace shardwise::view
