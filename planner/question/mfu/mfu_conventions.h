#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Work of a trained token as one community counts it.
struct FlopsConvention {
  std::string_view id;       // "palm": a word of --json
  std::string_view name;     // who prints it
  std::string_view formula;  // FLOPs of a token
  std::string_view source;
  double flops_per_token = 0;
  bool executed = false;  // with recompute: HFU, not MFU
};

/// All conventions, ours first. In formulas N is all parameters, of experts those that a token
/// meets; N' the weights of matrix products; E the input embedding, which a tied head uses too and
/// which then is no part of E; V both tables of the vocabulary; P learned positions; L layers, H
/// heads, Q their dimension, T tokens of a sequence. Attention is 6 L H Q T where the causal half
/// is left out, which a sliding window makes less, and 12 L H Q T whole.
///
/// \param recompute  what HFU counts again: full recompute the forward pass of every block,
///                   selective that of attention
std::vector<FlopsConvention> flops_conventions(const ModelSpec& model, const JobSpec& job,
                                               Recompute recompute);

}  // namespace shardwise
