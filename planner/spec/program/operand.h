#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "planner/spec/machine/dtype.h"

namespace shardwise {

/// Use that an operation makes of an operand's bytes.
enum class Access : std::uint8_t {
  input,       // reads them
  output,      // writes all of them, whatever was there
  accumulate,  // reads and writes them: adds, or computes in place
  workspace,   // writes, then reads: nothing is in them before, nor after
};

/// Part of an operand in its operation's kernel, which takes its operands by this name, those
/// of one name in their order. "Unit": parameters that are sharded, gathered and reduced together.
enum class OperandPart : std::uint8_t {
  weights,             // of a unit, as this rank keeps them
  cast_weights,        // the same in the type that travels or computes
  gathered_weights,    // of a unit, whole, in the type that computes
  weights_part,        // of gathered weights: what a smaller group gathers in backward
  main_weights,        // fp32 copy that the optimizer updates
  weight_remainders,   // in its place: 16 bits that bf16 weights lack of fp32
  first_moments,       // of the optimizer …
  second_moments,      //
  parameter,           // a tensor that a layer computes with, in the order of the layer
  parameter_gradient,  // and what is added to its gradient
  fresh_gradients,     // cleared before a pass makes them
  joined_gradients,    // or those of earlier micro-batches, which a pass adds to
  made_gradients,      // of one micro-batch: after the pass they join …
  gradient_sum,        // … this sum, the next operand, or begin it
  gradients,           // of a unit, as this rank keeps them
  sent_gradients,      // of a unit, whole: what a reduction reads
  received_gradients,  // what an all-to-all brings in a reduce-scatter's place
  shard_sum,           // of those, in fp32
  main_gradients,      // fp32 copy that the optimizer reads
  stream,              // the tensor that all layers of a micro-batch work on
  saved,               // what a layer keeps from forward to backward
  layer_workspace,     // of a layer's kernels; after `recompute` what its backward pass reads
  tables,              // shared by all layers, filled by the first operation that has them
  kernel_workspace,    // one block for the kernels of all passes, on a GPU
  // Of the block that host and device share (planner/cost/memory/step_block.h).
  inputs,          // tokens of a micro-batch
  targets,         // likewise
  loss_scale,      // of a micro-batch
  loss,            // likewise
  own_tokens,      // of this rank that count
  all_tokens,      // of all ranks
  token_factor,    // what gradients are multiplied with for them
  own_squares,     // of this rank's gradients
  all_squares,     // of all ranks
  gradient_norm,   // and their root
  gradient_check,  // what is known of this rank's gradients
  adam_step,       // the optimizer's numbers
};
inline constexpr std::size_t kOperandParts = 36;
inline constexpr std::array<std::string_view, kOperandParts> kOperandPartNames = {
    "weights",
    "cast_weights",
    "gathered_weights",
    "weights_part",
    "main_weights",
    "weight_remainders",
    "first_moments",
    "second_moments",
    "parameter",
    "parameter_gradient",
    "fresh_gradients",
    "joined_gradients",
    "made_gradients",
    "gradient_sum",
    "gradients",
    "sent_gradients",
    "received_gradients",
    "shard_sum",
    "main_gradients",
    "stream",
    "saved",
    "layer_workspace",
    "tables",
    "kernel_workspace",
    "inputs",
    "targets",
    "loss_scale",
    "loss",
    "own_tokens",
    "all_tokens",
    "token_factor",
    "own_squares",
    "all_squares",
    "gradient_norm",
    "gradient_check",
    "adam_step"};
constexpr std::string_view name_of(OperandPart part) {
  return kOperandPartNames[static_cast<std::size_t>(part)];
}
constexpr std::string_view name_of(Access access) {
  constexpr std::array<std::string_view, 4> kNames = {"input", "output", "accumulate", "workspace"};
  return kNames[static_cast<std::size_t>(access)];
}

/// Bytes that an operation reads or writes: `count` elements of a buffer of its stage's program,
/// from its element `first` on. Where ranks keep different pieces, those of one rank. `saved`,
/// `layer_workspace` and `tables` are laid out by the layer, and what is of the block for a step by
/// that: they count bytes, as int8. So do `weight_remainders`, which are no numbers.
struct Operand {
  OperandPart part = OperandPart::weights;
  Access access = Access::input;
  DType dtype = DType::fp32;
  std::uint32_t buffer = 0;  // index into StageProgram::buffers
  std::int32_t unit = -1;    // -1 when of none
  std::int64_t first = 0;
  std::int64_t count = 0;
  /// Elements that each rank of a communicating group has in what is whole. The last may
  /// fill fewer.
  std::int64_t piece = 0;

  bool reads() const { return access == Access::input || access == Access::accumulate; }
  bool writes() const { return access != Access::input; }
  std::int64_t begin_byte() const { return first * bytes_of(dtype); }
  std::int64_t end_byte() const { return (first + count) * bytes_of(dtype); }
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// Where the state of a unit lies: numbers of resident buffers, or of gradients that exist in a
/// part of the step. kNoBuffer where the rank keeps no such state.
inline constexpr std::uint32_t kNoBuffer = UINT32_MAX;
struct UnitBuffers {
  std::uint32_t weights = kNoBuffer;
  std::uint32_t main_weights = kNoBuffer;  // beside `weights`; their remainders alone
  std::uint32_t gradients = kNoBuffer;
  std::uint32_t first_moments = kNoBuffer;
  std::uint32_t second_moments = kNoBuffer;
  friend bool operator==(const UnitBuffers&, const UnitBuffers&) = default;
};

}  // namespace shardwise
