#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/data/token_sequences.h"
#include "executor/engine/trainer.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec::test {

// Small models of the catalogue with the layers that shardwise-run has, on CPUs.

/// Micro-batches of one sequence of 24 tokens. The model has so few tokens that a text has some of
/// every rank's. No number of ranks divides them: the last has less than its room.
Plan small_plan_of(const std::string& model, const Layout& layout,
                   std::int64_t num_microbatches = 2);

Layout over(std::int32_t tp, std::int32_t dp_shard = 1, int zero_stage = 0);

/// Kernels of a rank of such a plan.
LayerKernels kernels_of(const Plan& plan, std::int64_t rank);

/// Puts a rank's part of a tensor, without what pads it, into the whole one.
void put_part(const UnitTensor& tensor, int tp_rank, std::span<const float> part,
              std::vector<float>& whole);

/// A text for small_plan_of().
TokenSequences few_tokens(const Plan& plan);

}  // namespace shardwise::exec::test
