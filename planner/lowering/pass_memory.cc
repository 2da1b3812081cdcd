#include "planner/lowering/pass_memory.h"

#include <algorithm>
#include <utility>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/stage_moments.h"
#include "planner/cost/memory/stage_residents.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

PassMemoryBuffers::PassMemoryBuffers(const LoweringContext& context, std::int32_t stage,
                                     StageBuilder& builder)
    : context_(context),
      stage_(stage),
      builder_(builder),
      parts_(stage_parts(context.plan->model, context.memories,
                         context.stages[static_cast<std::size_t>(stage)])),
      gradients_leave_(gradients_leave(context.of_stage(stage))),
      offloaded_(context, offload_room(parts_, context.of_stage(stage)), builder) {
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    layers_ += chunk.layers.size();
  }
  saved_.assign(layers_ * static_cast<std::size_t>(context.num_microbatches), kNone);
}

void PassMemoryBuffers::residents() {
  const StageContext of_stage = context_.of_stage(stage_);
  const StageStates states = stage_states(parts_, of_stage);
  const StageResidents r = stage_residents(parts_, of_stage);
  builder_.resident(MemoryCategory::weights,
                    states.weights.bytes() + states.narrow_weights.bytes() +
                        states.narrow_casts.bytes() + states.narrow_scales.bytes() +
                        states.frozen_weights.bytes() + states.router_buffers.bytes());
  builder_.resident(MemoryCategory::main_weights, states.main_weights.bytes());
  builder_.resident(MemoryCategory::gradients, states.gradients.bytes());
  builder_.resident(MemoryCategory::library_workspace, r.workspace());
  builder_.resident(MemoryCategory::working, r.step_block.bytes());
  builder_.resident(MemoryCategory::gradient_staging,
                    r.placeholders.bytes() + states.reduce_buffer.bytes());
  builder_.resident(MemoryCategory::communicator, r.communicators.bytes());
  builder_.resident(MemoryCategory::runtime_context, context_.memory_rules.runtime.context);
  // The first step makes the moments of an engine that makes them late.
  const bool late = moments_are_late(context_.memory_rules, context_.layout());
  if (!context_.first_step || !late) {
    builder_.resident(MemoryCategory::optimizer_moments, states.moment_bytes());
  }
  if (!context_.first_step) {
    const BuffersBetweenSteps kept =
        buffers_between_steps(stage_buffers(parts_, of_stage), of_stage);
    builder_.resident(
        MemoryCategory::gathered_weights,
        kept.root.bytes(context_.memory_rules) + kept.units.bytes(context_.memory_rules));
  }
}

std::int64_t PassMemoryBuffers::saved_bytes(const StageLayer& layer) const {
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(layer.kind)];
  return layer.whole ? memory.saved_whole : memory.saved;
}

void PassMemoryBuffers::place(const LayerTurn& turn, OperationLists& lists) {
  if (offloaded_.on()) offloaded_.before(turn, saved_bytes(turn.layer()), lists);
}

void PassMemoryBuffers::before(const LayerTurn& turn, OperationLists& lists) {
  const StageLayer& layer = turn.layer();
  const std::int32_t mb = turn.pass.microbatch;
  if (!started_) {
    started_ = true;
    // A planned arena has buffers for messages, of StageMessages.
    const std::int64_t sent = plans_buffers(context_.engine())
                                  ? 0
                                  : message_buffers(parts_, context_.of_stage(stage_)).bytes();
    tables_ = builder_.buffer(MemoryCategory::activations, parts_.tables);
    lists.allocates.push_back(tables_);
    // A stage still holds the gradient it sent when the next micro-batch runs.
    sent_ = builder_.buffer(MemoryCategory::working, sent);
    lists.allocates.push_back(sent_);
  }
  if (turn.last) {
    lists.frees.push_back(tables_);
    lists.frees.push_back(sent_);
  }
  if (!context_.buffers) return;
  if (!offloaded_.on()) keep(turn, lists);
  if (turn.pass.part == LayerPart::backward_weight) return;

  // The fullest moment of the layer: what it keeps and what comes and goes.
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(layer.kind)];
  const bool forward = turn.pass.part == LayerPart::forward;
  const PassMemory& pass = !forward      ? backward_of(memory, layer.whole, gradients_leave_)
                           : layer.whole ? memory.forward_whole
                                         : memory.forward;
  std::int64_t left = std::max<std::int64_t>(0, peak_of(turn, pass) - saved_bytes(layer));
  const auto temporary = [&](MemoryCategory category, std::int64_t bytes) {
    const BufferId buffer = builder_.buffer(category, std::min(left, bytes), layer.layer, mb);
    left -= std::min(left, bytes);
    lists.allocates.push_back(buffer);
    lists.frees.push_back(buffer);
  };
  temporary(MemoryCategory::recompute_scratch, pass.recomputed);
  temporary(MemoryCategory::logits_and_loss, pass.loss);
  temporary(MemoryCategory::gradient_staging, pass.gradients);
  temporary(MemoryCategory::working, left);
  if (!turn.makes_gradients()) return;
  gradients_beside(turn, lists);
  table_gradients(turn, lists);
}

/// Most of a pass. Where the loss is apart, backward asks for the next layer's weights when the
/// loss has left its temporaries, or the root is cast then (NO_SHARD): they take the room of what
/// the loss has and nothing else.
std::int64_t PassMemoryBuffers::peak_of(const LayerTurn& turn, const PassMemory& pass) const {
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(turn.layer().kind)];
  if (!memory.loss_apart) return pass.peak;
  const Layout& layout = context_.layout();
  const bool casts = layout.zero_stage == 0 && casts_units(context_.memory_rules) &&
                     joins_root(context_.engine(), layout, context_.own_kernels);
  const bool asks = casts || (layout.zero_stage >= 3 && layout.reshard_after_forward != 0);
  std::int64_t beside = casts ? parts_.root.gathered() : 0;
  if (asks && turn.makes_gradients() && turn.at + 1 < turn.order.size()) {
    const auto next = static_cast<std::size_t>(turn.order[turn.at + 1].kind);
    const LayerParameters& p = context_.memories[next].parameters;
    const bool in_root = casts && !is_block(context_.memories[next].role);
    if (!in_root) beside += p.dense + p.routed + p.frozen;
  }
  if (beside == 0) return pass.peak;
  const PassMemory& rest =
      turn.makes_gradients() ? memory.backward_beside_loss : memory.forward_beside_loss;
  return std::max(rest.peak, pass.peak - beside * context_.memory_rules.weight_bytes);
}

/// Of a table that embedding and head share: the head's wait for the embedding's, and then there is
/// their sum besides.
void PassMemoryBuffers::table_gradients(const LayerTurn& turn, OperationLists& lists) {
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(turn.layer().kind)];
  if (memory.role == LayerRole::head) {
    const bool shared = std::ranges::any_of(turn.order, &StageLayer::tied_to_head);
    tied_gradient_ = shared ? memory.tied_gradient : 0;
    return;
  }
  if (tied_gradient_ > 0 && tied_table_ == kNone) {
    tied_table_ = builder_.buffer(MemoryCategory::gradient_staging, tied_gradient_,
                                  turn.layer().layer, turn.pass.microbatch);
    lists.allocates.push_back(tied_table_);
  }
  if (!turn.layer().tied_to_head) return;
  const BufferId sum = builder_.buffer(MemoryCategory::gradient_staging, tied_gradient_,
                                       turn.layer().layer, turn.pass.microbatch);
  lists.allocates.push_back(sum);
  lists.frees.push_back(sum);
  lists.frees.push_back(std::exchange(tied_table_, kNone));
  tied_gradient_ = 0;
}

/// What it keeps for backward, on the GPU.
void PassMemoryBuffers::keep(const LayerTurn& turn, OperationLists& lists) {
  BufferId& kept = saved_[static_cast<std::size_t>(turn.pass.microbatch) * layers_ + turn.slot()];
  if (turn.pass.part == LayerPart::forward) {
    const StageLayer& layer = turn.layer();
    kept = builder_.buffer(MemoryCategory::activations, saved_bytes(layer), layer.layer,
                           turn.pass.microbatch);
    lists.allocates.push_back(kept);
  } else if (!turn.makes_gradients()) {
    lists.uses.push_back(kept);
  } else if (!leaves_behind(turn, kept, lists)) {
    lists.frees.push_back(std::exchange(kept, kNone));
  }
}

/// Whether what a layer has kept, and more, stays when its backward pass is over: all of it goes
/// with the last layer.
bool PassMemoryBuffers::leaves_behind(const LayerTurn& turn, BufferId& kept,
                                      OperationLists& lists) {
  if (turn.at + 1 == turn.order.size()) {
    lists.frees.insert(lists.frees.end(), left_.begin(), left_.end());
    left_.clear();
    return false;
  }
  const StageLayer& layer = turn.layer();
  const std::int64_t bytes = left_behind(context_.memories[static_cast<std::size_t>(layer.kind)],
                                         layer.whole, context_.layout());
  if (bytes == 0) return false;
  const BufferId more = builder_.buffer(MemoryCategory::activations,
                                        std::max<std::int64_t>(0, bytes - saved_bytes(layer)),
                                        layer.layer, turn.pass.microbatch);
  lists.allocates.push_back(more);
  lists.uses.push_back(kept);
  left_.push_back(std::exchange(kept, kNone));
  left_.push_back(more);
  return true;
}

/// Those of a micro-batch that joins earlier ones.
void PassMemoryBuffers::gradients_beside(const LayerTurn& turn, OperationLists& lists) {
  if (context_.first_microbatch(turn.pass.chunk, turn.pass.microbatch)) return;
  const StageLayer& layer = turn.layer();
  const LayerMemory& memory = context_.memories[static_cast<std::size_t>(layer.kind)];
  const GradientsBeside beside =
      shardwise::gradients_beside(parts_, context_.of_stage(stage_), memory);
  if (beside.table.count > 0 && table_ == kNone) {
    table_ = builder_.buffer(MemoryCategory::gradient_staging, beside.table.bytes(), -1,
                             turn.pass.microbatch);
    lists.allocates.push_back(table_);
  }
  if (memory.role == LayerRole::embedding && table_ != kNone) {
    lists.frees.push_back(std::exchange(table_, kNone));
    return;
  }
  const BufferId own = builder_.buffer(MemoryCategory::gradient_staging, beside.layer.bytes(),
                                       layer.layer, turn.pass.microbatch);
  lists.allocates.push_back(own);
  lists.frees.push_back(own);
}

void PassMemoryBuffers::after(const LayerTurn& turn, OpId op) {
  offloaded_.after(turn, saved_bytes(turn.layer()), op);
}

void PassMemoryBuffers::optimizer(OperationLists& lists) {
  const StageStates states = stage_states(parts_, context_.of_stage(stage_));
  const auto during = [&](MemoryCategory category, const Amount& amount) {
    const BufferId buffer = builder_.buffer(category, amount.bytes());
    lists.allocates.push_back(buffer);
    lists.frees.push_back(buffer);
  };
  const StepTensors& step = context_.first_step ? states.first_step : states.steady_step;
  during(MemoryCategory::main_gradients, step.cast);
  during(MemoryCategory::gradient_staging, step.joined);
  during(MemoryCategory::optimizer_scratch, states.step_scratch);
  const bool late = moments_are_late(context_.memory_rules, context_.layout());
  if (context_.first_step && late) {
    lists.allocates.push_back(
        builder_.lasting(MemoryCategory::optimizer_moments, states.moment_bytes()));
  }
}

}  // namespace shardwise
