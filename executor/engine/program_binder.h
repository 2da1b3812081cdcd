#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/engine/arena.h"
#include "executor/engine/gradient_checks.h"
#include "executor/engine/gradient_flow.h"
#include "executor/engine/rank_state.h"
#include "executor/engine/stream_runner.h"
#include "executor/optimizer/adamw.h"
#include "executor/transformer/layer.h"
#include "planner/lowering/lowering_context.h"
#include "planner/spec/step_program.h"

namespace shardwise::exec {

/// What changes from step to step: read, and its results written, by the operations of one rank.
struct StepState {
  std::int64_t step = 0;
  std::vector<std::vector<std::int64_t>> inputs;   // by micro-batch: [batch, sequence]
  std::vector<std::vector<std::int64_t>> targets;  // by micro-batch: [batch, sequence]
  std::vector<LossSum> losses;                     // by micro-batch
  std::vector<float> loss_scales;                  // by micro-batch: of the gradient
  std::int64_t counted_tokens = 0;                 // of all micro-batches, of this rank or of all
  double gradient_norm = 0;
};

/// What the operations of a rank work with, whatever the program.
struct RankParts {
  const LoweringContext* context = nullptr;
  std::vector<std::unique_ptr<Layer>> layers;  // by kind
  std::function<void(std::byte*)> fill_tables;
  std::unique_ptr<RankState> state;
  World* world = nullptr;
  std::unique_ptr<Workers> workers;
  Arena* arena = nullptr;
  OptimizerRules optimizer;
  GradientChecks checks{{}};
  StepState step;
};

/// Whether there is a kernel for an operation of a program: a pass of a whole layer, or what data
/// parallelism moves and computes. Not for a single kernel of a layer (Granularity::kernel).
bool has_kernel(const StageProgram& program, const ProgramOp& op);

/// Gives each operation of one program its kernel. What an operation reads and writes follows from
/// its role, its layer and its micro-batch; when it runs, and beside what, is the program's alone.
class ProgramBinder {
 public:
  /// \param number  of the program in the arena
  ProgramBinder(RankParts& parts, const StageProgram& program, std::size_t number);

  const std::vector<MemoryItem>& items() const { return items_.all(); }
  const OpKernels& kernels() const { return kernels_; }

 private:
  /// A tensor in an item, or, of kNoItem, in the rank's own state.
  struct Where {
    ItemId item = kNoItem;
    TensorPlace place;
    std::int64_t begin = 0;  // the item's first element in the unit
  };
  /// Weights that a pass casts before it runs: whole ones that mixed precision keeps in fp32.
  struct Cast {
    std::size_t unit = 0;
    ItemId item = kNoItem;
  };
  struct PassItems {
    std::vector<Cast> casts;
    std::vector<Where> weights;
    std::vector<Where> gradients;
    std::vector<GradientTarget> targets;
    ItemId saved = kNoItem;
    ItemId workspace = kNoItem;
    ItemId stream = kNoItem;
    bool makes_tables = false;  // the first pass of the step
  };

  void bind(OpId op);
  void bind_pass(OpId op);
  void bind_cast(OpId op);
  void bind_gather_outer(OpId op);
  void bind_gather(OpId op);
  void bind_copy_out(OpId op);
  void bind_reshard(OpId op);
  Numbers part_numbers(ItemId item, std::size_t unit) const;
  void bind_copy_in(OpId op);
  void bind_reduce(OpId op);
  void bind_sum(OpId op);
  void bind_reduce_outer(OpId op);
  void bind_gather_updated(OpId op);
  void sum_over(Communicator& group, const Numbers& kept) const;
  void bind_finalize(OpId op);
  void bind_norm(OpId op);
  void bind_optimizer(OpId op);

  PassItems pass_items(OpId op);
  ItemId weights_item(OpId op, std::size_t unit, PassItems& pass);
  void run_forward(const ProgramOp& op, const PassItems& pass);
  void run_backward(const ProgramOp& op, const PassItems& pass);
  void run_recompute(const ProgramOp& op, const PassItems& pass);
  void cast_weights(const PassItems& pass) const;
  void settle_gradients(const PassItems& pass, bool before);
  const Layer& layer_of(const ProgramOp& op) const;

  /// Of a reduction: what it reads, and whether it begins with what earlier micro-batches left.
  struct Reduced {
    std::size_t unit = 0;
    ItemId source = kNoItem;  // kNoItem: the rank's own gradients
    bool joins = false;
  };
  /// What an all-to-all brings in a reduce-scatter's place.
  struct Received {
    ItemId item = kNoItem;
    bool joins = false;
  };
  Reduced reduced_by(OpId op);
  Numbers read_by(const Reduced& reduced);
  /// Where an operation puts a unit: the program's buffer, or an item of its own.
  ItemId unit_item(OpId op, MemoryCategory category, std::size_t unit, DType dtype);
  std::shared_ptr<Communicator> group_of(const ProgramOp& op);
  std::byte* at(ItemId item) const { return parts_.arena->at(number_, item); }
  Numbers unit_numbers(ItemId item, std::size_t unit, DType dtype) const;
  std::int64_t shard(std::size_t unit) const {
    return parts_.state->shard(unit, Placement::shard_inner);
  }
  /// Of weights that are resharded after forward: the ranks that share them, and what each keeps.
  int part_ranks() const { return parts_.context->layout().reshard_after_forward; }
  std::int64_t part_elements(std::size_t unit) const {
    return shard(unit) * parts_.state->place().shard_ranks / part_ranks();
  }
  const StateTypes& types() const { return parts_.state->types(); }
  RankState::View view(std::size_t unit) const {
    return parts_.state->view(*parts_.arena, number_, unit);
  }
  const std::byte* weights_at(const Where& where) const;
  std::byte* gradients_at(const Where& where) const;
  void touch_gradients(std::size_t unit, OpId op);

  RankParts& parts_;
  const StageProgram& program_;
  std::size_t number_;
  MemoryItems items_;
  ProgramBuffers buffers_;
  GradientFlow flow_;
  ItemId tables_ = kNoItem;
  std::vector<ItemId> gathered_;            // by unit: its weights, whole
  std::vector<ItemId> cast_;                // by unit: this rank's shard, to be gathered
  std::vector<ItemId> parts_of_;            // by unit: what a smaller group gathers in backward
  std::vector<ItemId> copied_;              // by unit: its gradients, in a reduction's input
  std::vector<Received> received_;          // by unit: of its gradients
  std::vector<ItemId> streams_;             // by micro-batch
  std::vector<std::vector<ItemId>> saved_;  // by layer of the model and micro-batch
  ItemId recomputed_ = kNoItem;             // what the next backward pass reads
  bool has_norm_ = false;
  OpKernels kernels_;
};

}  // namespace shardwise::exec
