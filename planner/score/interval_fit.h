#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/estimate/interval_table.h"
#include "planner/score/score.h"

namespace shardwise {

/// log(measured / predicted) of one figure; of a step_ratio the difference of two.
struct Residual {
  IntervalOf quantity = IntervalOf::step;
  std::string source;
  std::string family;
  std::string architecture;
  double value = 0;
};

/// Those of a report's figures. Pairs are of runs of one source with the same question, whose
/// predicted times of a sequence differ by at most a quarter; each pair counts both ways round.
std::vector<Residual> residuals_of(const ScoreReport& report);

/// Calibrates an interval for each quantity, and for each family and architecture with enough
/// sources and rows, as docs/score.md says.
///
/// Split conformal prediction on the residuals: a cell's interval leaves `tail` of its weight
/// beyond either end. Each source of a cell has the same weight, whatever its rows. The tail is
/// the largest with which residuals of a source, left out of the calibration, lie in its intervals
/// in kIntervalLevel of cases, mean over the sources.
/// Sources: Vovk, Gammerman and Shafer, "Algorithmic learning in a random world" (2005), chapter 4;
/// Dunn, Wasserman and Ramdas, "Distribution-free prediction sets for two-layer hierarchical
/// models" (arXiv:1809.07441), section 2, for sources as the unit that is drawn.
IntervalTable fit_intervals(std::span<const Residual> residuals);

}  // namespace shardwise
