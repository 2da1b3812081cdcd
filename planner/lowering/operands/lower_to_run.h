#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/lowering/operands/unit_pieces.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Where sequence parallelism has a rank's piece of a tensor.
struct MetPiece {
  OperandPart part = OperandPart::stream;  // or saved, or layer_workspace
  std::int64_t first = 0;                  // elements
  bool adds = false;                       // a reduce-scatter's sum joins it
};

/// A tensor of a layer that a collective inside a pass works on: the stream, or one in what the
/// layer lays out itself. It works in its place, but where the piece lies elsewhere.
struct MetTensor {
  OperandPart part = OperandPart::stream;  // or saved, or layer_workspace
  DType dtype = DType::fp32;
  std::int64_t first = 0;  // elements; of the stream all are
  std::int64_t count = 0;
  std::int64_t piece = 0;  // of an all-gather or reduce-scatter: each rank's elements of them
  bool apart = false;      // in LayerRoom::gathered, not in the workspace
  std::optional<MetPiece> own = {};  // NOLINT(*-redundant-member-init): GCC asks for it
};

/// Memory that the kernels of a kind of layer are given, bytes.
struct LayerRoom {
  std::int64_t saved = 0;  // from forward to backward of one micro-batch
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;
  std::int64_t tables = 0;    // made once, shared by all layers
  std::int64_t gathered = 0;  // beside backward_workspace, for what a backward pass gathers
  // Tensors of the collectives between a pass's regions, in their order.
  std::vector<MetTensor> met_forward = {};    // NOLINT(*-redundant-member-init): GCC asks for it
  std::vector<MetTensor> met_recompute = {};  // NOLINT(*-redundant-member-init)
  std::vector<MetTensor> met_backward = {};   // NOLINT(*-redundant-member-init)

  const std::vector<MetTensor>& met(OpRole role) const {
    return role == OpRole::forward     ? met_forward
           : role == OpRole::recompute ? met_recompute
                                       : met_backward;
  }
};

/// Number among what a pass of a layer is cut into, regions and collectives, each counted from 0
/// (KernelPasses): the number of a region, 0 of a whole pass, or of a collective.
inline std::size_t number_in_pass(const ProgramOp& op) {
  return op.part < 0 ? 0 : static_cast<std::size_t>(op.part) / 2;
}
/// Whether it is the collective between two regions.
inline bool is_between_regions(const StageProgram& program, const ProgramOp& op) {
  const bool pass =
      op.role == OpRole::forward || op.role == OpRole::recompute || op.role == OpRole::backward;
  return pass && program.communication(op) != nullptr;
}

/// lower() for one rank that runs the step: with the operands of every operation and, in place of
/// the ledger's, the buffers that they lie in, each there from the first operation that touches it
/// to the last. Residents come first, with the same numbers in both steps' programs. With a
/// planned arena and our kernels these are the ledger's bytes; under other engines the schedule's
/// buffers, and the rooms of the kernels that run. Passes are cut into regions as lower_regions()
/// has them. A region lists what the whole pass reads and writes, but the stream only where it
/// works on that, and a collective the one tensor that it moves.
/// \param rooms  by kind of layer
/// \param adds_into_shard  a reduction adds into its shard, and into one of another type than what
/// is sent. Else it sums in its place in what is sent, and the operation `accumulate` adds
/// \param stage  of the rank; the program has this one alone
/// \pre whole experts and sequences: cp and ep are 1; of several stages buffers for messages
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
