#include "planner/lowering/stage_lowering.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/finish_step.h"
#include "planner/lowering/kernel_passes.h"
#include "planner/lowering/pass_memory.h"
#include "planner/lowering/stage/stage_builder.h"
#include "planner/lowering/stage_messages.h"
#include "planner/schedule/schedule.h"

namespace shardwise {
namespace {

constexpr std::size_t kLayerParts = 5;

OpRole role_of(LayerPart part) {
  constexpr std::array<OpRole, kLayerParts> kRoles = {OpRole::forward, OpRole::backward,
                                                      OpRole::backward_input,
                                                      OpRole::backward_weight, OpRole::recompute};
  return kRoles[static_cast<std::size_t>(part)];
}

/// The layers of a chunk in the order of one direction.
struct Direction {
  std::vector<StageLayer> layers;
  std::vector<std::size_t> slots;
};

/// The operation that ends a pass, and where it left what the pass hands on.
struct Made {
  OpId op = kNone;
  BufferId buffer = kNone;
};

class StageLowering {
 public:
  StageLowering(const LoweringContext& context, std::int32_t stage, StageProgram& program,
                std::vector<PlacedOperand>* placed)
      : context_(context),
        stage_(stage),
        builder_(program, placed, context.buffers),
        memory_(context, stage, builder_),
        messages_(context, stage, builder_),
        kernels_(context, builder_),
        costs_(kLayerParts * context.memories.size(), -1) {
    const bool whole = context.placement.parameters == Placement::replicate;
    data_parallel_ = whole ? whole_parameters(context, stage, builder_)
                           : sharded_parameters(context, stage, builder_);
    std::size_t slot = 0;
    for (const ModelChunk& chunk : chunks()) {
      Direction down{chunk.layers, {}};
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) down.slots.push_back(slot++);
      Direction up = down;
      std::ranges::reverse(up.layers);
      std::ranges::reverse(up.slots);
      forward_.push_back(std::move(down));
      backward_.push_back(std::move(up));
    }
  }

  void run() {
    const std::vector<PipelinePass>& order = context_.orders[static_cast<std::size_t>(stage_)];
    builder_.expect(operations(order));
    memory_.residents();
    data_parallel_->start();
    const std::size_t last = last_pass(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool both = order[i].with_next;
      pass(std::span(order).subspan(i, both ? 2 : 1), i == last || (both && i + 1 == last));
      if (both) ++i;
    }
    messages_.finish();
    data_parallel_->finish();
    finish_step(context_, stage_, builder_, memory_, *data_parallel_);
  }

 private:
  const std::vector<ModelChunk>& chunks() const {
    return context_.stage_chunks[static_cast<std::size_t>(stage_)];
  }
  const Direction& direction(const PipelinePass& pass) const {
    const auto chunk = static_cast<std::size_t>(pass.chunk);
    return pass.part == LayerPart::forward ? forward_[chunk] : backward_[chunk];
  }
  bool has_weights(const StageLayer& layer) const {
    return context_.times[static_cast<std::size_t>(layer.kind)].weight_gradient > Seconds(0);
  }

  /// What of a layer a pass runs; a layer without weight products has nothing to put off.
  LayerPart part_of(const PipelinePass& pass, const StageLayer& layer) const {
    if (pass.part == LayerPart::backward_input && !has_weights(layer)) return LayerPart::backward;
    return pass.part;
  }
  bool runs(const PipelinePass& pass, const StageLayer& layer) const {
    return pass.part != LayerPart::backward_weight || has_weights(layer);
  }
  /// Passes of layers and messages, about.
  std::size_t operations(const std::vector<PipelinePass>& order) const {
    std::size_t count = 0;
    for (const PipelinePass& pass : order) {
      const std::vector<StageLayer>& layers = direction(pass).layers;
      const bool again = pass.part != LayerPart::forward && !layers.empty();
      count += layers.size() + (again && layers.front().recomputed ? layers.size() : 0) + 2;
    }
    return count;
  }
  /// The last pass of which anything runs.
  std::size_t last_pass(const std::vector<PipelinePass>& order) const {
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::vector<StageLayer>& layers = direction(order[i]).layers;
      if (std::ranges::any_of(layers, [&](const StageLayer& l) { return runs(order[i], l); })) {
        return i;
      }
    }
    return order.size();
  }

  /// A pass, or two that run as one, and what they hand on.
  void pass(std::span<const PipelinePass> passes, bool last) {
    std::array<StageMessages::Handed, 2> handed;
    std::array<Made, 2> made;
    for (std::size_t i = 0; i < passes.size(); ++i) handed[i] = messages_.receive(passes[i]);
    // The other's message is waited for here and read there.
    if (passes.size() > 1) other_ = handed[1].op;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      made[i] = layers(passes[i], handed[i], last && i + 1 == passes.size());
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
      messages_.send(passes[i], made[i].buffer, made[passes.size() - 1].op);
    }
  }

  Made layers(const PipelinePass& pass, const StageMessages::Handed& handed, bool last) {
    const Direction& way = direction(pass);
    std::size_t last_at = way.layers.size();
    while (last_at > 0 && !runs(pass, way.layers[last_at - 1])) --last_at;
    Made done;
    for (std::size_t i = 0; i < way.layers.size(); ++i) {
      if (!runs(pass, way.layers[i])) continue;
      LayerTurn turn{pass, way.layers, i, way.slots, last && i + 1 == last_at};
      turn.pass.part = part_of(pass, way.layers[i]);
      const bool first = i == 0;
      done = layer(turn, first ? handed : StageMessages::Handed{}, i + 1 == last_at);
      if (first) messages_.read(handed, done.op);
    }
    return done;
  }

  Made layer(const LayerTurn& turn, const StageMessages::Handed& handed, bool last) {
    lists_.clear();
    lists_.waits.push_back(handed.op);
    lists_.waits.push_back(std::exchange(other_, kNone));
    lists_.uses.push_back(handed.buffer);
    Made made;
    if (last) made.buffer = messages_.before_last(turn.pass, lists_);
    if (turn.last) messages_.before_end(lists_);
    const LayerPart part = turn.pass.part;
    memory_.place(turn, lists_);
    data_parallel_->before(turn, lists_);
    memory_.before(turn, lists_);
    const bool again =
        turn.layer().recomputed && part != LayerPart::forward && part != LayerPart::backward_weight;
    if (again) {
      again_.waits = lists_.waits;
      again_.allocates = lists_.allocates;
      again_.uses = lists_.uses;
      if (add(turn, LayerPart::recompute, again_) != kNone) {
        lists_.waits.clear();
        lists_.allocates.clear();
      }
    }
    const auto first = static_cast<OpId>(builder_.program().operations.size());
    const OpId op = add(turn, part, lists_);
    builder_.message_in(first, handed.buffer, false);
    builder_.message_in(op, made.buffer, true);
    data_parallel_->after(turn, op);
    memory_.after(turn, op);
    made.op = op;
    return made;
  }

  /// A part of a layer: one operation, or its kernels.
  OpId add(const LayerTurn& turn, LayerPart part, const OperationLists& lists) {
    const ProgramOp op = operation(turn, part);
    if (!context_.items[static_cast<std::size_t>(turn.layer().kind)].empty()) {
      return kernels_.add(op, turn.layer(), part, lists);
    }
    return builder_.add(op, lists.waits, lists.allocates, lists.frees, lists.uses);
  }

  ProgramOp operation(const LayerTurn& turn, LayerPart part) {
    ProgramOp op;
    op.role = role_of(part);
    op.stream = Stream::compute;
    op.chunk = turn.pass.chunk;
    op.layer = turn.layer().layer;
    op.microbatch = turn.pass.microbatch;
    if (context_.items[static_cast<std::size_t>(turn.layer().kind)].empty()) {
      op.cost = cost(turn.layer().kind, part);
    }
    return op;
  }

  std::int32_t cost(std::int32_t kind, LayerPart part) {
    const auto k = static_cast<std::size_t>(kind);
    std::int32_t& cost = costs_[k * kLayerParts + static_cast<std::size_t>(part)];
    if (cost < 0) {
      const bool full = context_.layout().recompute == Recompute::full;
      LayerWork work{kind, part, 1};
      if (part == LayerPart::recompute && full) work.times = context_.layout().recompute_interval;
      cost = builder_.layer_cost(work, launches(k, part) * work.times);
    }
    return cost;
  }

  double launches(std::size_t kind, LayerPart part) const {
    const LayerTime& time = context_.times[kind];
    switch (part) {
      case LayerPart::forward:
        return time.forward.kernels;
      case LayerPart::backward:
        return time.backward.kernels;
      case LayerPart::backward_input:
        return time.backward.kernels - time.weight_kernels;
      case LayerPart::backward_weight:
        return time.weight_kernels;
      case LayerPart::recompute:
        return time.recompute.kernels;
    }
    return 0;
  }

  const LoweringContext& context_;
  std::int32_t stage_;
  StageBuilder builder_;
  PassMemoryBuffers memory_;
  StageMessages messages_;
  KernelPasses kernels_;
  std::unique_ptr<DataParallelSchedule> data_parallel_;
  std::vector<std::int32_t> costs_;  // by kind and part
  std::vector<Direction> forward_;   // by chunk
  std::vector<Direction> backward_;
  OperationLists lists_;
  OperationLists again_;  // of a recompute; it frees nothing
  OpId other_ = kNone;    // message of the pass that runs as one with the one about to begin
};

}  // namespace

StageProgram lower_stage(const LoweringContext& context, std::int32_t stage,
                         std::vector<PlacedOperand>* placed) {
  StageProgram program;
  program.stage = stage;
  StageLowering(context, stage, program, placed).run();
  return program;
}

}  // namespace shardwise
