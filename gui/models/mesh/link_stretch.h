#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/question/predictions.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// Factors that a link's bandwidth may have.
inline constexpr double kLeastStretch = 0.125;
inline constexpr double kMostStretch = 8;

/// Time of the plan's layout over the factor of one tier's bandwidth, all else as it is.
struct StretchCurve {
  std::vector<double> factors;
  std::vector<Seconds> step_times;
};

/// Links with another bandwidth than they have, and what it is worth.
struct LinkStretch {
  std::vector<double> factors;       // by tier; 1 where it is as it is
  std::optional<StepReport> report;  // the estimate with them; nothing while all are 1
  // Results from the worker:
  std::optional<Seconds> simulated;         // with them; nothing where it is not simulated
  std::optional<Seconds> simulated_before;  // without
  std::optional<StepReport> best;           // of the best layout with them
  std::vector<StretchCurve> curves;         // by tier

  bool any() const { return report.has_value(); }
};

/// The cluster with its links so many times as fast: with_bandwidth() of each.
ClusterSpec stretched(const ClusterSpec& cluster, const std::vector<double>& factors);
/// The plan on that cluster.
Plan stretched(Plan plan, const std::vector<double>& factors);

std::vector<StretchCurve> stretch_curves(const Plan& plan, const Predictions& by);

/// simulate()'s step, where it is short enough to be simulated while people drag.
std::optional<Seconds> quick_simulation(const Plan& plan, const Predictions& by);

/// "400 GB/s x 2 = 800 GB/s".
std::string stretch_text(const Plan& plan, const LinkStretch& stretch, std::size_t tier);

/// Gain or loss, a line a fact: the step in percent, the tokens in money, the price of a GPU-hour
/// up to which it pays, the simulated step, another layout that becomes the best.
/// \param winner  of the question as it is; null where none is known
std::vector<std::string> stretch_words(const Plan& plan, const StepReport& before,
                                       const LinkStretch& stretch, const StepReport* winner);

/// Reason by which such a line is found.
std::string stretch_reason(const std::string& words);

}  // namespace shardwise::view
