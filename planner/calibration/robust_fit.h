#pragma once

#include <functional>
#include <vector>

namespace shardwise {

/// A curve fit: parameters > 0 that make the residuals small.
struct FitProblem {
  std::vector<double> start;  // what is known before; parameters stay near it where no point speaks
  std::vector<double> low;    // smallest and largest values, > 0
  std::vector<double> high;
  /// Writes one residual a point, log(predicted / measured).
  std::function<void(const std::vector<double>& parameters, std::vector<double>& residuals)>
      residuals;
  std::size_t points = 0;
};

struct FitOptions {
  double scale = 0.05;    // residuals beyond this count less and less (soft L1)
  double anchor = 0.001;  // of a point's weight: how firmly `start` holds
  int starts = 12;        // from `start`, and from this many places around it
  int iterations = 200;
};

/// Minimises the soft L1 loss of the residuals over the logarithms of the parameters.
/// Deterministic. Source: Levenberg-Marquardt, Madsen, Nielsen, Tingleff, "Methods for non-linear
/// least squares problems" (2004), section 3.2; loss by reweighting, Triggs et al., "Bundle
/// adjustment" (2000), section 4.3.
std::vector<double> robust_fit(const FitProblem& problem, const FitOptions& options = {});

}  // namespace shardwise
