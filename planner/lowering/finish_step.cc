#include "planner/lowering/finish_step.h"

#include <cmath>
#include <utility>

#include "planner/cost/step/optimizer_time.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

class StepEnd {
 public:
  StepEnd(const LoweringContext& context, std::int32_t stage, StageBuilder& builder)
      : context_(context),
        builder_(builder),
        layers_(context.stages[static_cast<std::size_t>(stage)]),
        parts_(stage_parts(context.plan->model, context.memories, layers_)) {}

  void run(PassMemoryBuffers& memory, DataParallelSchedule& data_parallel) {
    finalize();
    norm();
    lists_.clear();
    memory.optimizer(lists_);
    const std::vector<BufferId>& late = data_parallel.late_buffers();
    const std::vector<BufferId>& made = data_parallel.step_allocates();
    lists_.frees.insert(lists_.frees.end(), late.begin(), late.end());
    lists_.allocates.insert(lists_.allocates.end(), made.begin(), made.end());
    const OpId stepped = context_.layout().offload_optimizer ? step_on_host() : step();
    data_parallel.after_step(stepped);
  }

 private:
  /// What gradients are final after, so far.
  std::vector<OpId> ready() const {
    return {finalized_, builder_.last(Stream::compute), builder_.last(Stream::reduce_scatter),
            builder_.last(Stream::outer_reduce)};
  }

  void add(std::int32_t part, Stream stream, std::int32_t cost) {
    ProgramOp op;
    op.role = OpRole::finalize;
    op.stream = stream;
    op.part = part;
    op.cost = cost;
    finalized_ = builder_.add(op, ready(), {}, {});
  }
  void sum(std::int32_t part, Stream stream, GroupKind group, double bytes,
           CollectiveKind kind = CollectiveKind::all_reduce) {
    CollectiveWork work;
    work.kind = kind;
    const bool gradients = part <= FinalizePart::kTiedEmbedding || part == FinalizePart::kCopies ||
                           part == FinalizePart::kCopiedHeads;
    work.dtype = gradients ? context_.gradient_dtype() : DType::fp32;
    work.group = group;
    work.ends = part == FinalizePart::kTiedEmbedding || part == FinalizePart::kCopies;
    work.bytes = std::llround(bytes);
    if (work.bytes > 0) add(part, stream, builder_.collective_cost(work));
  }

  void finalize() {
    std::int64_t replicated = 0;
    std::int64_t copied = 0;
    std::int64_t experts = 0;
    const Layout& layout = context_.layout();
    for (const StageRun& run : layers_.runs) {
      const LayerParameters& p = context_.memories[static_cast<std::size_t>(run.kind)].parameters;
      replicated += (layout.sequence_parallel ? p.replicated : p.head_norms) * run.layers;
      copied += p.copied_heads * run.layers;
      experts += p.counted_experts * run.layers;
    }
    const double each = context_.gradient_bytes();
    if (copies_model(layout)) {
      sum(FinalizePart::kCopies, Stream::outer_reduce, GroupKind::pp,
          each * held(context_.placement.optimizer));
    }
    if (layout.tp > 1) {
      sum(FinalizePart::kNorms, Stream::tensor_parallel, GroupKind::tp,
          each * static_cast<double>(replicated));
      sum(FinalizePart::kCopiedHeads, Stream::tensor_parallel, GroupKind::tp,
          each * static_cast<double>(copied));
    }
    tied_embedding(each);
    if (experts > 0) even_out_experts(static_cast<double>(experts));
    if (context_.job().calculate_per_token_loss) scale_by_tokens(each);
  }

  void tied_embedding(double each) {
    bool tied = layers_.copies_embedding;
    if (layers_.has_embedding) {
      for (const StageLayers& other : context_.stages) tied = tied || other.copies_embedding;
    }
    if (!tied) return;
    for (const LayerMemory& memory : context_.memories) {
      if (memory.role != LayerRole::embedding) continue;
      sum(FinalizePart::kTiedEmbedding, Stream::outer_reduce, GroupKind::pp,
          each * static_cast<double>(memory.parameters.vocabulary));
      return;
    }
  }

  /// Tokens that each expert got, summed over the ranks of the stage, move its bias.
  void even_out_experts(double experts) {
    const double bytes = kCountBytes * experts;
    if (context_.layout().world() > context_.layout().pp) {
      sum(FinalizePart::kExpertCounts, Stream::outer_reduce, GroupKind::stage, bytes);
    }
    add(FinalizePart::kExpertBias, Stream::compute,
        builder_.traffic_cost(kExpertBiasPasses * bytes));
  }

  /// The last stage knows its tokens; all ranks divide their gradients by those of the batch.
  void scale_by_tokens(double each) {
    const Layout& layout = context_.layout();
    if (layout.pp > 1) {
      sum(FinalizePart::kTokensFromLastStage, Stream::outer_reduce, GroupKind::pp, kCountBytes,
          CollectiveKind::broadcast);
    }
    if (layout.dp() * layout.cp > 1) {
      sum(FinalizePart::kTokens, Stream::outer_reduce, GroupKind::dp_cp, kCountBytes);
    }
    const double bytes = 2 * each * held(context_.placement.gradients);
    if (bytes > 0) add(FinalizePart::kScale, Stream::compute, builder_.traffic_cost(bytes));
  }

  /// One number, summed over all ranks. What this rank adds is part of the optimizer's work.
  void norm() {
    if (context_.layout().world() <= 1) return;
    CollectiveWork work;
    work.kind = CollectiveKind::all_reduce;
    work.group = GroupKind::world;
    work.dtype = DType::fp32;
    work.bytes = 4;
    ProgramOp op;
    op.role = OpRole::gradient_norm;
    op.stream = Stream::outer_reduce;
    op.cost = builder_.collective_cost(work);
    finalized_ = builder_.add(op, ready(), {}, {});
  }

  double held(Placement placement) const {
    const ShardRanks ranks = shard_ranks(context_.layout(), placement);
    return static_cast<double>(parts_.dense) / static_cast<double>(ranks.dense) +
           static_cast<double>(parts_.routed) / static_cast<double>(ranks.routed);
  }

  void add_traffic(OpCost& cost, MoveKind kind, double bytes, double launches) const {
    if (bytes <= 0) return;
    KernelWork kernel;
    kernel.move = kind;
    kernel.gemm.dtype = context_.time_rules.precision;
    kernel.bytes = bytes;
    kernel.launches = launches;
    cost.kernels.push_back(kernel);
    cost.launches += launches;
  }

  /// The kernels of the step on the GPU, with so many bytes of an element of the optimizer's state.
  OpCost kernels(double bytes_each, double launches) const {
    const TimeRules& rules = context_.time_rules;
    OpCost cost;
    cost.launches = 0;
    if (rules.clears_buffer) {
      add_traffic(cost, MoveKind::copy,
                  context_.gradient_bytes() * held(context_.placement.gradients), 1);
    }
    // Casts to 8 bits: of its shard where that travels, else of all that the rank computes with.
    const Placement cast =
        rules.weight_bytes < 2 ? context_.placement.optimizer : Placement::replicate;
    add_traffic(cost, MoveKind::copy, rules.weight_cast_bytes * held(cast), 0);
    add_traffic(cost, MoveKind::optimizer, bytes_each * held(context_.placement.optimizer),
                launches);
    return cost;
  }

  OpId add(OpRole role, Stream stream, OpCost cost, std::vector<OpId> waits, bool first,
           bool last) {
    ProgramOp op;
    op.role = role;
    op.stream = stream;
    op.cost = builder_.cost(std::move(cost));
    const std::vector<BufferId> none;
    return builder_.add(op, waits, first ? lists_.allocates : none, last ? lists_.frees : none);
  }

  OpId step() {
    const TimeRules& rules = context_.time_rules;
    OpCost cost = kernels(optimizer_bytes(rules, context_.layout()),
                          rules.optimizer_kernels * static_cast<double>(parts_.tensors));
    add_traffic(cost, MoveKind::gradient_norm,
                rules.shared_norm_bytes * held(Placement::shard_both), 0);
    if (cost.kernels.empty()) return builder_.last(Stream::compute);
    return add(OpRole::optimizer, Stream::compute, std::move(cost), ready(), true, true);
  }

  /// Gradients go to the host, which updates its states and sends weights back. The GPU clears its
  /// buffer and takes the norm.
  OpId step_on_host() {
    const double elements = held(context_.placement.optimizer);
    OpCost norm = kernels(4, 1);
    if (norm.kernels.empty()) return builder_.last(Stream::compute);
    const OpId normed =
        add(OpRole::optimizer, Stream::compute, std::move(norm), ready(), true, false);
    OpCost down;
    down.host_bytes = std::llround(context_.gradient_bytes() * elements);
    OpCost update;
    update.host_elements = std::llround(elements);
    OpCost up;
    up.host_bytes = std::llround(context_.time_rules.weight_bytes * elements);
    const OpId sent =
        add(OpRole::offload, Stream::host_copy, std::move(down), {normed}, false, false);
    ProgramOp op;
    op.role = OpRole::optimizer;
    op.stream = Stream::host_copy;
    op.part = 1;
    op.cost = builder_.cost(std::move(update));
    const OpId updated = builder_.add(op, {sent});
    return add(OpRole::reload, Stream::host_copy, std::move(up), {updated}, false, true);
  }

  const LoweringContext& context_;
  StageBuilder& builder_;
  const StageLayers& layers_;
  StageParts parts_;
  OperationLists lists_;
  OpId finalized_ = kNone;
};

}  // namespace

void finish_step(const LoweringContext& context, std::int32_t stage, StageBuilder& builder,
                 PassMemoryBuffers& memory, DataParallelSchedule& data_parallel) {
  StepEnd(context, stage, builder).run(memory, data_parallel);
}

}  // namespace shardwise
