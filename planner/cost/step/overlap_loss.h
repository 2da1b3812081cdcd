#pragma once

#include <algorithm>

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/stage_times.h"

namespace shardwise {

/// Shares of a pass's stream time that go to matrix products, and to other compute.
struct KernelShares {
  double products = 0;
  double rest = 0;
};
struct PassKernels {
  KernelShares forward;
  KernelShares backward;
};
/// Kernels that data parallelism hides behind: passes of the slowest stage and of the first one.
struct StageKernels {
  PassKernels slowest;
  PassKernels first;
};
StageKernels stage_kernels(const StageTimes& stages);

/// Time a pass loses to collectives beside it, over the inner axis of data parallelism and over the
/// outer one on a stream of its own: each takes multiprocessors, but a second wave of matrix
/// products comes once. docs/simulator.md, "Multiprocessors".
class OverlapLoss {
 public:
  OverlapLoss() = default;
  OverlapLoss(const KernelShares& kernels, const OverlapTax& inner, const OverlapTax& outer)
      : inner_products_(kernels.products * inner.gemm),
        outer_products_(kernels.products * outer.gemm),
        inner_rest_(kernels.rest * inner.other),
        outer_rest_(kernels.rest * outer.other) {}

  /// Seconds, to so many of each.
  double to(double inner, double outer) const {
    return std::max(inner * inner_products_, outer * outer_products_) + inner * inner_rest_ +
           outer * outer_rest_;
  }
  /// `compute` seconds beside so many of each, at moments that have nothing to do with each other:
  /// it is slowed no longer than it takes.
  double slowed(double compute, double inner, double outer) const {
    const double share = to(inner > 0 ? 1 : 0, outer > 0 ? 1 : 0);
    const double longer = std::max(inner, outer);
    // Part of the shorter that runs while the longer does not: it brings a wave of its own.
    const double apart = longer < compute ? std::min(inner, outer) * (1 - longer / compute) : 0;
    const double slowed =
        compute + to(inner, outer) + apart * std::min(inner_products_, outer_products_);
    return share < 1 ? std::min(slowed, compute / (1 - share)) : slowed;
  }

 private:
  double inner_products_ = 0;
  double outer_products_ = 0;
  double inner_rest_ = 0;
  double outer_rest_ = 0;
};

struct PassLosses {
  OverlapLoss forward;
  OverlapLoss backward;
};
PassLosses pass_losses(const PassKernels& kernels, const LeafContext& context);

}  // namespace shardwise
