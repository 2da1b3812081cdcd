#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/engine/arena.h"
#include "executor/engine/communicator_table.h"
#include "executor/engine/program_runner.h"
#include "executor/engine/rank_state.h"
#include "executor/transformer/layer.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Parts the operations of a rank work with, whatever the program.
struct RankParts {
  const LoweringContext* context = nullptr;
  std::int64_t rank = 0;                       // of the job
  std::vector<std::unique_ptr<Layer>> layers;  // by kind
  std::function<void(std::byte* tables, const Issue& to)> fill_tables;
  std::unique_ptr<RankState> state;
  std::unique_ptr<Compute> compute;
  std::unique_ptr<World> tensors;  // of the device; null where the job's own world moves them
  std::unique_ptr<CommunicatorTable> communicators;
  Arena* arena = nullptr;
  double clip_norm = 0;  // of all gradients together; 0: not clipped
  GradientCheckRules checks;
  std::function<void()> before_update;  // of weights by the optimizer; may be none
  std::function<void()> after_update;
};

/// Whether there is a kernel for an operation of a program: a pass of a whole layer, in a program
/// with operands a region of one or the collective between two, or what data parallelism moves and
/// computes. Not for a single kernel of a layer (Granularity::kernel).
bool has_kernel(const StageProgram& program, const ProgramOp& op);

/// Gives each operation of one program its kernel: a table from roles to kernels over operands.
/// Binder of operations: operands say what each reads and writes, the program when it runs.
class ProgramBinder {
 public:
  /// Aborts where the program is not sound (check_program()) or an operation has no kernel: what we
  /// made wrong is not run. \param program  with operands (lower_to_run()); must outlive this.
  /// \param number  of it in the arena  \throws BadInput  where pieces are ragged and a
  /// communicator takes equal ones only
  ProgramBinder(RankParts& parts, const StageProgram& program, std::size_t number);

  const std::vector<MemoryItem>& items() const { return items_; }
  const OpKernels& kernels() const { return kernels_; }
  /// The block that kernels share on a GPU; empty where there is none. \pre the arena is allocated
  std::span<std::byte> kernel_workspace() const;
  /// Issues the passes of layers to another Compute than the rank's, in program order.
  /// \pre the arena is allocated
  void issue_passes(Compute& to, DeviceStream& stream);

 private:
  using Operands = std::span<const Operand>;
  using Maker = OpKernel (ProgramBinder::*)(const ProgramOp& op);

  /// The table. Null where there is no kernel.
  static Maker maker_of(const StageProgram& program, const ProgramOp& op);
  friend bool has_kernel(const StageProgram& program, const ProgramOp& op);

  // bind_passes.cc
  Compute& compute() const { return to_ != nullptr ? *to_ : *parts_.compute; }
  OpKernel forward(const ProgramOp& op);
  OpKernel recompute(const ProgramOp& op);
  OpKernel backward(const ProgramOp& op);
  OpKernel meet(const ProgramOp& op);
  OpKernel meet_piece(const ProgramOp& op);
  // bind_moves.cc: the first operand becomes the second
  OpKernel accumulate(const ProgramOp& op);
  OpKernel copy(const ProgramOp& op);
  OpKernel all_gather(const ProgramOp& op);
  OpKernel reduce_scatter(const ProgramOp& op);
  OpKernel all_reduce(const ProgramOp& op);
  OpKernel all_to_all(const ProgramOp& op);
  OpKernel sum(const ProgramOp& op);
  OpKernel message(const ProgramOp& op);
  // bind_step.cc
  OpKernel hand_on_tokens(const ProgramOp& op);
  OpKernel count_tokens(const ProgramOp& op);
  OpKernel scale_gradients(const ProgramOp& op);
  OpKernel sum_table(const ProgramOp& op);
  OpKernel sum_shared(const ProgramOp& op);
  /// Part of this rank's part of a table of two stages in common with that of a rank of the other.
  struct TablePart {
    int peer = 0;           // in the communicator
    std::size_t begin = 0;  // elements of this rank's part
    std::size_t count = 0;
  };
  std::vector<TablePart> common_table_parts() const;
  OpKernel gradient_norm(const ProgramOp& op);
  OpKernel optimizer(const ProgramOp& op);

  /// Those of one name, in their order.
  std::vector<TensorView> all(Operands operands, OperandPart part) const;
  static bool has(Operands operands, OperandPart part) {
    return std::ranges::find(operands, part, &Operand::part) != operands.end();
  }
  /// Where the one of that name begins; null where there is none.
  std::byte* at(Operands operands, OperandPart part) const;
  TensorView numbers(const Operand& operand) const {
    return {parts_.arena->at(number_, operand.buffer) + operand.begin_byte(),
            static_cast<std::size_t>(operand.count), operand.dtype};
  }
  std::span<std::byte> bytes(Operands operands, OperandPart part) const {
    const Operand& found = *std::ranges::find(operands, part, &Operand::part);
    return {numbers(found).data, numbers(found).bytes()};
  }
  void cast_weights(Operands operands, DeviceStream& stream) const;
  /// Tensors the layers of a pass work on, and the messages that it begins and ends as.
  struct Streams {
    const Operand* received = nullptr;
    const Operand* own = nullptr;
    const Operand* sent = nullptr;
  };
  static Streams streams_of(Operands operands);
  void copy_stream(const Operand* from, const Operand* to, DeviceStream& stream) const {
    if (from != nullptr && to != nullptr) compute().cast(numbers(*to), numbers(*from), stream);
  }
  std::vector<const std::byte*> weights(Operands operands) const;
  BackwardPass backward_pass(Operands operands) const;
  std::vector<ConstTensorView> gradients(Operands operands) const;
  std::vector<UnitUpdate> updates(Operands operands) const;
  void check_pieces(const ProgramOp& op) const;
  /// Looks at this rank's gradients, before they are summed with those of others. On a stream
  /// beside that of the passes.
  void check(const ProgramOp& op, const Operand& gradients, DeviceStream& stream) const;
  /// Makes the sum of a reduction the shard, or adds it, as the operand says.
  void put(const Operand& shard, const ConstTensorView& sum, DeviceStream& stream) const;
  /// The root of the squares of `ranks` at `sums`, and what clipping makes of it.
  void take_norm(Operands operands, OperandPart sums, int ranks, DeviceStream& stream) const;
  /// Value of an operand of the step's block.
  template <class T>
  T* step_at(Operands operands, OperandPart part) const {
    return reinterpret_cast<T*>(at(operands, part));
  }
  const Layer& layer_of(const ProgramOp& op) const;
  Communicator* group_of(const ProgramOp& op) const {
    return &parts_.communicators->of(program_, op);
  }

  RankParts& parts_;
  const StageProgram& program_;
  std::size_t number_;
  Compute* to_ = nullptr;  // where passes go in place of parts_.compute
  std::vector<MemoryItem> items_;
  OpKernels kernels_;
};

}  // namespace shardwise::exec
