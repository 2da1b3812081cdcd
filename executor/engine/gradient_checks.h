#pragma once

#include <cstdint>

#include "executor/comm/numbers.h"

namespace shardwise::exec {

/// What a rank looks for in its own gradients of a bucket before they are summed with others',
/// which is when it can still be said whose they were.
struct GradientCheckRules {
  bool nan = false;    // not a number, or infinite
  bool large = false;  // a norm more than 10 times the largest of the first 100
};

/// Source: NVIDIA/Megatron-LM, megatron/core/distributed/param_and_grad_buffer.py (check_grads) and
/// megatron/core/rerun_state_machine.py (is_unexpectedly_large: threshold 10, 100 samples). Here
/// what is found ends the run.
class GradientChecks {
 public:
  explicit GradientChecks(const GradientCheckRules& rules) : rules_(rules) {}

  bool any() const { return rules_.nan || rules_.large; }
  /// \throws std::runtime_error with the step, the bucket and what is wrong with them
  void check(std::int64_t step, std::size_t bucket, const ConstNumbers& gradients);

 private:
  GradientCheckRules rules_;
  double largest_ = 0;
  int samples_ = 0;
};

}  // namespace shardwise::exec
