#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/lowering/data_parallel/buckets.h"
#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/data_parallel/fp32_sums.h"
#include "planner/lowering/data_parallel/unit_reductions.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {
namespace {

class WholeParameters : public DataParallelSchedule {
 public:
  WholeParameters(const LoweringContext& context, std::int32_t stage, StageBuilder& builder)
      : context_(context),
        builder_(builder),
        units_(context, builder),
        order_(false),
        slots_(context, stage, builder),
        sums_(context, builder, slots_),
        buckets_(buckets_of(context, stage)) {
    const EngineProfile& engine = context.engine();
    // Gradients leave unit by unit, for their shards or as FSDP1 joins them.
    joins_ = joins_root(engine, context.layout(), context.own_kernels);
    const bool queues = engine.gradient_buffer == GradientBuffer::unit_queue &&
                        context.placement.gradients != Placement::replicate;
    if (queues || joins_) {
      by_unit_.emplace(context, stage, builder, units_, order_, slots_);
    }
    const bool learns = engine.gradient_buffer == GradientBuffer::contiguous;
    overlaps_reductions_ = context.layout().overlap_grad_reduce &&
                           !(learns && context.first_step) && !engine.flattens_gradients;
    gathers_ = context.placement.optimizer != Placement::replicate;
    overlaps_gathers_ =
        gathers_ && context.layout().overlap_param_gather && engine.overlaps_updated_gather;
    for (const Bucket& bucket : buckets_) {
      costs_.push_back(units_.reduction(bucket.routed, bucket.elements, bucket.padded));
      gather_costs_.push_back(gathers_ ? units_.gather(bucket.routed, bucket.padded) : -1);
    }
    // Forward meets the buckets of each chunk in the opposite order.
    for (std::size_t i = 0; i < buckets_.size(); ++i) forward_.push_back(i);
    std::ranges::stable_sort(forward_, [&](std::size_t a, std::size_t b) {
      if (buckets_[a].chunk != buckets_[b].chunk) return buckets_[a].chunk < buckets_[b].chunk;
      return a > b;
    });
    gathered_.assign(buckets_.size(), kNone);
    std::size_t layers = 0;
    for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
      layers += chunk.layers.size();
    }
    ready_.resize(layers);
    kept_.resize(layers);
    autocasts_.assign(layers, kNone);
    for (std::size_t b = 0; b < buckets_.size(); ++b) ready_[buckets_[b].first].push_back(b);
    const StageParts parts = stage_parts(context.plan->model, context.memories,
                                         context.stages[static_cast<std::size_t>(stage)]);
    const StageContext of_stage = context.of_stage(stage);
    const StageStates states = stage_states(parts, of_stage);
    late_bytes_ = states.late_gradients.bytes_each;
    if (bucket_use(of_stage) == BucketUse::as_made) parts_bytes_ = states.late_gradients.bytes();
    flat_bytes_ = states.flat_gradients.bytes();
    root_elements_ = parts.root.gathered();
    reduce_buffer_bytes_ = reduce_buffer(context.memory_rules, context.layout()).bytes();
  }

  void start() override {
    if (overlaps_gathers_ && !context_.first_step && !forward_.empty()) gather_next(kNone);
  }

  void before(const LayerTurn& turn, OperationLists& lists) override {
    const bool first = turn.pass.part == LayerPart::forward &&
                       context_.first_microbatch(turn.pass.chunk, turn.pass.microbatch);
    if (first) wait_gathers(turn, lists);
    cast(turn, lists);
    if (turn.makes_gradients()) {
      keep_gradients(turn, lists);
      if (reduce_buffer_bytes_ > 0 && reduce_buffer_ == kNone && has_gradients(turn)) {
        reduce_buffer_ = builder_.buffer(MemoryCategory::gradient_staging, reduce_buffer_bytes_);
        lists.allocates.push_back(reduce_buffer_);
      }
    }
    if (turn.last) lists.frees.push_back(reduce_buffer_);
    if (by_unit_) by_unit_->before(turn, lists);
  }

  void after(const LayerTurn& turn, OpId op) override {
    if (by_unit_) {
      by_unit_->after(turn, op);
      return;
    }
    if (!turn.makes_gradients() || !reduces(turn.pass) || !overlaps_reductions_) return;
    for (const std::size_t bucket : ready_[turn.slot()]) reduce(bucket, turn.pass.microbatch, op);
  }

  void finish() override {
    step_allocates_.push_back(made_);
    if (by_unit_) {
      const std::vector<BufferId>& late = by_unit_->late_buffers();
      late_buffers_.insert(late_buffers_.end(), late.begin(), late.end());
    } else {
      if (!overlaps_reductions_) reduce_at_once();
      sums_.drain();
    }
    slots_.finish();
  }

  void after_step(OpId optimizer) override {
    if (!gathers_ || overlaps_gathers_) return;
    while (next_gathered_ < forward_.size()) gather_next(optimizer);
  }

 private:
  /// All buckets after the last pass, where nothing overlaps.
  void reduce_at_once() {
    const OpId after = builder_.last(Stream::compute);
    const bool any = std::ranges::any_of(
        costs_, [](const UnitCosts::Group& c) { return c.reduce >= 0 || c.reduce_outer >= 0; });
    BufferId flat = any ? builder_.buffer(MemoryCategory::gradient_staging, flat_bytes_) : kNone;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (!reduce(b, last_of(buckets_[b].chunk), after, flat)) continue;
      if (flat != kNone) late_buffers_.push_back(flat);
      flat = kNone;
    }
  }

  std::int32_t last_of(std::int16_t chunk) const {
    auto last = static_cast<std::int32_t>(context_.num_microbatches) - 1;
    while (!context_.last_microbatch(chunk, last)) last /= 2;
    return last;
  }
  bool reduces(const PipelinePass& pass) const {
    return reduces_after(context_.layout(), context_.last_microbatch(pass.chunk, pass.microbatch));
  }

  ProgramOp operation(OpRole role, Stream stream, std::size_t bucket, std::int32_t cost) const {
    ProgramOp op;
    op.role = role;
    op.stream = stream;
    op.chunk = buckets_[bucket].chunk;
    op.routed = buckets_[bucket].routed;
    op.part = static_cast<std::int32_t>(bucket);
    op.cost = cost;
    return op;
  }

  /// \returns whether there was anything to reduce
  bool reduce(std::size_t bucket, std::int32_t microbatch, OpId made, BufferId flat = kNone) {
    const UnitCosts::Group& costs = costs_[bucket];
    OpId done = made;
    if (costs.reduce >= 0) {
      ProgramOp op = operation(OpRole::reduce, Stream::reduce_scatter, bucket, costs.reduce);
      op.microbatch = microbatch;
      done = sums_.reduce(op, costs, buckets_[bucket].padded, {{made}, {flat}, {}, {}});
      flat = kNone;
    }
    const bool last = context_.last_microbatch(buckets_[bucket].chunk, microbatch);
    if (costs.reduce_outer >= 0 && reduces_outer_after(last)) {
      ProgramOp op =
          operation(OpRole::reduce_outer, Stream::outer_reduce, bucket, costs.reduce_outer);
      op.microbatch = microbatch;
      builder_.add(op, {done}, {flat});
    }
    return costs.reduce >= 0 || costs.reduce_outer >= 0;
  }

  /// The next bucket of updated parameters, which waits for its optimizer step where that is this
  /// program's.
  void gather_next(OpId after) {
    const std::size_t bucket = forward_[next_gathered_++];
    if (gather_costs_[bucket] < 0) return;
    gathered_[bucket] = builder_.add(
        operation(OpRole::gather_updated, Stream::all_gather, bucket, gather_costs_[bucket]),
        {after});
  }

  /// The first forward pass waits for the buckets of its layers; who waits for one has the next
  /// dispatched.
  void wait_gathers(const LayerTurn& turn, OperationLists& lists) {
    if (!overlaps_gathers_ || context_.first_step) return;
    for (std::size_t i = 0; i < forward_.size(); ++i) {
      const Bucket& bucket = buckets_[forward_[i]];
      if (turn.slot() < bucket.first || turn.slot() > bucket.last) continue;
      while (next_gathered_ <= i) gather_next(kNone);
      lists.waits.push_back(gathered_[forward_[i]]);
      if (next_gathered_ == i + 1 && next_gathered_ < forward_.size()) gather_next(kNone);
    }
  }

  /// Tensors that backward makes and the step frees. While a layer runs they are counted with it;
  /// from the next operation on they are gradients. Where a bucket is reduced as they are made,
  /// those of the rank's part stay.
  void keep_gradients(const LayerTurn& turn, OperationLists& lists) {
    lists.allocates.push_back(made_);
    made_ = kNone;
    if (late_bytes_ == 0 || kept_[turn.slot()] || by_unit_) return;
    kept_[turn.slot()] = true;
    if (parts_bytes_ > 0) {
      made_ = builder_.buffer(MemoryCategory::gradients, std::exchange(parts_bytes_, 0));
      late_buffers_.push_back(made_);
      late_bytes_ = 0;
      return;
    }
    const UnitElements& sizes = units_.of(turn.layer()).sizes;
    const bool whole = context_.placement.gradients == Placement::replicate;
    const std::int64_t elements = whole ? sizes.trained()
                                        : sizes.padded_dense / context_.shards.dense +
                                              sizes.padded_routed / context_.shards.routed;
    made_ = builder_.buffer(MemoryCategory::gradients, elements * late_bytes_, turn.layer().layer);
    if (made_ != kNone) late_buffers_.push_back(made_);
  }

  /// Whether a weight gradient is there when the layer is at its fullest, of it or of one before.
  /// Of several micro-batches nearly all find the buffer that the first one made.
  bool has_gradients(const LayerTurn& turn) const {
    const LayerMemory& memory = context_.memories[static_cast<std::size_t>(turn.layer().kind)];
    return context_.num_microbatches > 1 || turn.at > 0 || memory.backward.gradients > 0;
  }

  /// Mixed precision computes with casts of the unit that runs. FSDP1 casts the next one beside it,
  /// and the root, which is embedding and head, from one end of a pass to the other.
  void cast(const LayerTurn& turn, OperationLists& lists) {
    if (!casts_units(context_.memory_rules)) return;
    if (context_.engine().keeps_buckets) return autocast(turn, lists);
    if (!joins_) {
      const BufferId casts = casts_of(turn, turn.at);
      lists.allocates.push_back(casts);
      lists.frees.push_back(casts);
      return;
    }
    if (turn.at == 0) {
      root_ = builder_.buffer(MemoryCategory::gathered_weights,
                              root_elements_ * context_.memory_rules.weight_bytes, -1,
                              turn.pass.microbatch);
      lists.allocates.push_back(root_);
    }
    if (turn.at + 1 == turn.order.size()) lists.frees.push_back(std::exchange(root_, kNone));
    BufferId own = std::exchange(next_cast_, kNone);
    if (own == kNone && !is_outside(turn, turn.at)) {
      own = casts_of(turn, turn.at);
      lists.allocates.push_back(own);
    }
    lists.frees.push_back(own);
    const std::size_t next = turn.at + 1;
    if (!turn.makes_gradients() || next == turn.order.size() || is_outside(turn, next)) return;
    next_cast_ = casts_of(turn, next);
    lists.allocates.push_back(next_cast_);
  }

  /// Autocast keeps a layer's casts from its forward pass to its backward pass, which for a block
  /// that runs again makes them anew: those are gone when the forward pass of all layers ends.
  void autocast(const LayerTurn& turn, OperationLists& lists) {
    const LayerMemory& memory = context_.memories[static_cast<std::size_t>(turn.layer().kind)];
    if (memory.role == LayerRole::embedding) return;
    const bool again = context_.layout().recompute == Recompute::full && is_block(memory.role) &&
                       !turn.layer().whole;
    BufferId& kept = autocasts_[turn.slot()];
    if (!turn.makes_gradients() || again) {
      const std::int64_t table = has_tied_table(memory) ? table_elements(context_.memories) : 0;
      kept = casts_of(turn, units_.of(turn.layer()).sizes.elements() + table, turn.at);
      lists.allocates.push_back(kept);
    }
    if (turn.makes_gradients()) return lists.frees.push_back(kept);
    if (again) forward_casts_.push_back(kept);
    if (turn.at + 1 < turn.order.size()) return;
    lists.frees.insert(lists.frees.end(), forward_casts_.begin(), forward_casts_.end());
    forward_casts_.clear();
  }

  BufferId casts_of(const LayerTurn& turn, std::size_t at) {
    return casts_of(turn, units_.of(turn.order[at]).sizes.elements(), at);
  }
  BufferId casts_of(const LayerTurn& turn, std::int64_t elements, std::size_t at) {
    return builder_.buffer(MemoryCategory::gathered_weights,
                           elements * context_.memory_rules.weight_bytes, turn.order[at].layer,
                           turn.pass.microbatch);
  }
  bool is_outside(const LayerTurn& turn, std::size_t at) const {
    return !is_block(context_.memories[static_cast<std::size_t>(turn.order[at].kind)].role);
  }

  const LoweringContext& context_;
  StageBuilder& builder_;
  UnitTable units_;
  CommunicatorOrder order_;
  ArenaSlots slots_;
  Fp32Sums sums_;
  std::vector<Bucket> buckets_;
  std::vector<UnitCosts::Group> costs_;
  std::vector<std::int32_t> gather_costs_;
  std::vector<std::vector<std::size_t>> ready_;  // by slot: buckets that its backward completes
  std::vector<std::size_t> forward_;             // buckets in the order in which forward needs them
  std::vector<OpId> gathered_;
  std::size_t next_gathered_ = 0;
  std::optional<UnitReductions> by_unit_;
  bool overlaps_reductions_ = true;
  bool overlaps_gathers_ = false;
  bool gathers_ = false;
  BufferId made_ = kNone;   // gradients of the layer that ran last
  std::vector<bool> kept_;  // by slot: its gradients exist
  std::int64_t late_bytes_ = 0;
  std::int64_t parts_bytes_ = 0;  // of gradients that reductions leave, until they are made
  std::int64_t flat_bytes_ = 0;
  std::int64_t reduce_buffer_bytes_ = 0;
  BufferId reduce_buffer_ = kNone;
  bool joins_ = false;  // joins_root()
  std::int64_t root_elements_ = 0;
  BufferId root_ = kNone;                // casts of the root, …
  BufferId next_cast_ = kNone;           // … and of the layer that runs next
  std::vector<BufferId> autocasts_;      // by slot
  std::vector<BufferId> forward_casts_;  // those that the end of a forward pass frees
};

}  // namespace

std::unique_ptr<DataParallelSchedule> whole_parameters(const LoweringContext& context,
                                                       std::int32_t stage, StageBuilder& builder) {
  return std::make_unique<WholeParameters>(context, stage, builder);
}

}  // namespace shardwise
