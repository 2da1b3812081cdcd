#pragma once

#include <cstdint>

#include "executor/kernels/host_and_gpu.h"

namespace shardwise::exec {

inline constexpr double kLargeGradientThreshold = 10;

/// Limits of a rank's own gradients of a bucket before they are summed with others', which is when
/// it can still be said whose they were.
struct GradientCheckRules {
  bool nan = false;    // not a number, or infinite
  bool large = false;  // a norm more than 10 times the largest of the first 100
  bool any() const { return nan || large; }
};

/// State of a rank's gradients so far, in the device's memory.
struct GradientCheckState {
  double largest = 0;          // norm of a bucket
  double norm = 0;             // of the first bucket with something wrong
  std::int64_t bucket = -1;    // its number; -1: none
  std::int32_t operation = 0;  // of the program, that found it
  std::int32_t samples = 0;    // norms that `largest` is of, at most 100
};

/// Whose gradients are looked at.
struct GradientBucket {
  std::int64_t number = 0;
  std::int32_t operation = 0;  // of the program, that looks
};

/// Takes the norm of a bucket's gradients. Looks at nothing more once one was wrong.
/// Source: NVIDIA/Megatron-LM, megatron/core/distributed/param_and_grad_buffer.py (check_grads) and
/// megatron/core/rerun_state_machine.py (is_unexpectedly_large: threshold 10, 100 samples).
SHARDWISE_HOST_AND_GPU inline void check_gradients(const GradientCheckRules& rules, double norm,
                                                   const GradientBucket& bucket,
                                                   GradientCheckState& state) {
  constexpr std::int32_t kSamples = 100;
  if (state.bucket >= 0) return;
  const bool finite = norm - norm == 0;
  const bool large = finite && rules.large && state.samples >= kSamples &&
                     norm > kLargeGradientThreshold * state.largest;
  if (large || (rules.nan && !finite)) {
    state.norm = norm;
    state.bucket = bucket.number;
    state.operation = bucket.operation;
    return;
  }
  if (!rules.large || !finite) return;
  if (state.samples < kSamples) ++state.samples;
  if (norm > state.largest) state.largest = norm;
}

}  // namespace shardwise::exec
