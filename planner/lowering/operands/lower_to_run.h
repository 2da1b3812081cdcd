#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/lowering/operands/unit_pieces.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Memory that the kernels of a kind of layer are given, bytes.
struct LayerRoom {
  std::int64_t saved = 0;  // from forward to backward of one micro-batch
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;
  std::int64_t tables = 0;  // made once, shared by all layers
};

/// lower() for one rank that runs the step: with the operands of every operation and, in place of
/// the ledger's, the buffers that they lie in, each there from the first operation that touches it
/// to the last. Residents come first, with the same numbers in both steps' programs. With a
/// planned arena and our kernels these are the ledger's bytes; under other engines the schedule's
/// buffers, and the rooms of the kernels that run.
/// \param rooms  by kind of layer
/// \param adds_into_shard  a reduction adds into its shard, and into one of another type than what
/// is sent. Else it sums in its place in what is sent, and the operation `accumulate` adds
/// \param stage  of the rank; the program has this one alone
/// \pre whole heads and experts: tp, cp and ep are 1; of several stages buffers for messages
/// (plans_buffers()), and a place of the stage
StepProgram lower_to_run(const Plan& plan, StepKind step, const DataParallelPlace& place,
                         std::span<const LayerRoom> rooms, bool adds_into_shard = true,
                         std::int32_t stage = 0);

/// The parameters that a layer computes with: its own, and the token table where a head has none.
std::vector<TensorPlace> parameters_of(const ModelSpec& model, const StateUnits& units,
                                       std::int32_t layer);

/// The unit that a gather, a copy or a reduction moves.
std::size_t unit_of(const StateUnits& units, const ProgramOp& op);

}  // namespace shardwise
