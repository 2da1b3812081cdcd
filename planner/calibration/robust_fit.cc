#include "planner/calibration/robust_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>

namespace shardwise {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

class Fitter {
 public:
  Fitter(const FitProblem& problem, const FitOptions& options)
      : problem_(problem),
        options_(options),
        size_(static_cast<Eigen::Index>(problem.start.size())),
        anchor_(to_log(problem.start)),
        anchor_weight_(options.anchor * static_cast<double>(problem.points) * options.scale *
                       options.scale) {}

  Vector to_log(const std::vector<double>& parameters) const {
    Vector x(size_);
    for (Eigen::Index i = 0; i < size_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      x[i] = std::log(std::clamp(parameters[at], problem_.low[at], problem_.high[at]));
    }
    return x;
  }
  std::vector<double> from_log(const Vector& x) const {
    std::vector<double> parameters(static_cast<std::size_t>(size_));
    for (Eigen::Index i = 0; i < size_; ++i) {
      parameters[static_cast<std::size_t>(i)] = std::exp(x[i]);
    }
    return parameters;
  }

  struct State {
    Vector x;
    Vector residuals;
    double loss = 0;
  };
  State at(const Vector& x) const {
    State state;
    state.x = clamped(x);
    state.residuals = residuals(state.x);
    const double s = options_.scale;
    for (const double r : state.residuals) {
      state.loss += 2 * s * s * (std::sqrt(1 + r * r / (s * s)) - 1);
    }
    state.loss += anchor_weight_ * (state.x - anchor_).squaredNorm();
    return state;
  }

  State descend(const Vector& start) const {
    State now = at(start);
    double damping = 1e-2;
    for (int i = 0; i < options_.iterations && damping < 1e8; ++i) {
      const Matrix slope = jacobian(now);
      // Reweighted, the soft L1 loss has the gradient of least squares.
      const double s = options_.scale;
      const Vector weights = (1 + (now.residuals / s).array().square()).sqrt().inverse().matrix();
      const Matrix weighted = weights.asDiagonal() * slope;
      Matrix normal = slope.transpose() * weighted;
      Vector gradient = weighted.transpose() * now.residuals;
      normal.diagonal().array() += anchor_weight_;
      gradient += anchor_weight_ * (now.x - anchor_);
      bool better = false;
      while (!better && damping < 1e8) {
        Matrix damped = normal;
        damped.diagonal() *= 1 + damping;
        const State next = at(now.x - damped.ldlt().solve(gradient));
        better = next.loss < now.loss;
        if (better) {
          const bool flat = now.loss - next.loss < 1e-9 * now.loss;
          now = next;
          damping = std::max(damping / 5, 1e-9);
          if (flat) return now;
        } else {
          damping *= 4;
        }
      }
    }
    return now;
  }

 private:
  Vector clamped(Vector x) const {
    for (Eigen::Index i = 0; i < size_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      x[i] = std::clamp(x[i], std::log(problem_.low[at]), std::log(problem_.high[at]));
    }
    return x;
  }
  Vector residuals(const Vector& x) const {
    std::vector<double> values(problem_.points);
    problem_.residuals(from_log(x), values);
    return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
  }
  Matrix jacobian(const State& state) const {
    constexpr double kStep = 1e-4;
    Matrix slope(state.residuals.size(), size_);
    for (Eigen::Index i = 0; i < size_; ++i) {
      Vector moved = state.x;
      const auto at = static_cast<std::size_t>(i);
      const bool up = moved[i] + kStep <= std::log(problem_.high[at]);
      moved[i] += up ? kStep : -kStep;
      slope.col(i) = (residuals(moved) - state.residuals) / (up ? kStep : -kStep);
    }
    return slope;
  }

  const FitProblem& problem_;
  const FitOptions& options_;
  Eigen::Index size_;
  Vector anchor_;
  double anchor_weight_;
};

}  // namespace

std::vector<double> robust_fit(const FitProblem& problem, const FitOptions& options) {
  const Fitter fitter(problem, options);
  const Vector start = fitter.to_log(problem.start);
  Fitter::State best = fitter.descend(start);
  // The engine is the same everywhere; the distributions of the standard library are not.
  std::mt19937 random(1);
  for (int i = 0; i < options.starts; ++i) {
    Vector around = start;
    for (double& x : around) {
      x += 2.0 * (static_cast<double>(random()) / static_cast<double>(std::mt19937::max())) - 1.0;
    }
    const Fitter::State state = fitter.descend(around);
    if (state.loss < best.loss) best = state;
  }
  return fitter.from_log(best.x);
}

}  // namespace shardwise
