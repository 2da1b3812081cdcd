#pragma once

#include <cstdint>

#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Bytes of a block, from `begin` on.
struct StepRange {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;

  std::int64_t end() const { return begin + bytes; }
  /// The `number`-th of so many equal parts.
  StepRange part(std::int64_t number, std::int64_t parts) const {
    return {begin + number * (bytes / parts), bytes / parts};
  }
};

/// Facts that the block depends on.
struct StepBlockShape {
  std::int64_t microbatches = 1;
  std::int64_t tokens = 0;        // of a micro-batch on a rank
  std::int64_t ranks = 1;         // whose squares of gradients are gathered
  std::int64_t token_counts = 1;  // ranks whose tokens are counted together; 1: none are gathered
};

/// The block of a rank's memory through which host and device hand each other what changes from
/// step to step under our kernels. The host writes it before a step, up to `uploaded`, and reads it
/// after the step, up to `downloaded`; operations read and write it in between. Every range begins
/// at a multiple of 128.
struct StepBlock {
  StepRange losses;         // by micro-batch: sum in fp64 and tokens in int64; the host clears them
  StepRange gradient_norm;  // fp64
  StepRange gradient_check;  // what is known of this rank's gradients
  std::int64_t downloaded = 0;
  StepRange adam_step;  // eight fp32 numbers, of which operations write the clip factor, and a seed
  StepRange loss_scales;  // by micro-batch: fp32
  StepRange own_tokens;   // of all micro-batches that count: int64
  StepRange inputs;       // by micro-batch: int64 [batch, sequence]
  StepRange targets;      // likewise
  std::int64_t uploaded = 0;
  StepRange token_factor;  // fp32
  StepRange all_tokens;    // own_tokens of all ranks; none where one counts alone
  StepRange own_squares;   // of gradients, as the device sums them
  StepRange all_squares;   // of all ranks; none where there is one
  std::int64_t bytes = 0;
};

/// Bytes a device's sum of squares may take. Source: docs/executor.md, The order of sums: 256
/// exponents of 128 bits; on GPUs 512 parts in fp64.
inline constexpr std::int64_t kSquaresBytes = 4096;

StepBlock step_block(const StepBlockShape& shape);

/// \param per_token_loss  tokens are counted over all ranks
StepBlockShape step_block_shape(const Layout& layout, std::int64_t num_microbatches,
                                std::int64_t sequence_length, bool per_token_loss);

}  // namespace shardwise
