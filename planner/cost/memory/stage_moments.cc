#include "planner/cost/memory/stage_moments.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/moment_pass.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/schedule/message_slots.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

/// What does not depend on the layer that runs.
struct Shared {
  std::int64_t in_flight = 0;
  StageBuffers buffers;
};

PassBytes bytes_with(const Shared& shared, const FullestMoment& at, const StageParts& parts,
                     const StageContext& context, const StageStates& states) {
  const StageMoment& moment = at.moment;
  const bool backward = at.backward;
  const PassMemory pass = at.joined ? joined_pass(shared.buffers, moment, context)
                                    : pass_of(shared.buffers, moment, backward);
  PassBytes b;
  b.activations = pass.kept + parts.tables + other_layers(moment, backward, parts, context).bytes();
  b.in_flight = shared.in_flight;
  b.loss = pass.loss;
  b.recomputed = pass.recomputed;
  b.working = pass.working();
  b.working += message_buffers(parts, context).bytes();
  b.gathered = gathered_weights_at(shared.buffers, parts, context, moment, backward, at.joined)
                   .bytes(*context.rules);
  b.staging = pass.gradients;
  b.staging += staging_at(shared.buffers, parts, context, moment, backward, at.joined).bytes();
  b.gradients =
      gradients_made(shared.buffers, moment, backward, at.joined, parts, context, states).bytes();
  return b;
}

/// The sum of bytes_with, less what is the same at every moment.
std::int64_t height_of(const Shared& shared, const StageMoment& moment, bool backward, bool joined,
                       const StageParts& parts, const StageContext& context,
                       const StageStates& states) {
  std::int64_t height =
      shared.in_flight +
      (joined ? joined_pass(shared.buffers, moment, context).peak
              : pass_of(shared.buffers, moment, backward).peak) +
      other_layers(moment, backward, parts, context).bytes() +
      gathered_weights_at(shared.buffers, parts, context, moment, backward, joined)
          .bytes(*context.rules) +
      gradients_made(shared.buffers, moment, backward, joined, parts, context, states).bytes();
  height += staging_at(shared.buffers, parts, context, moment, backward, joined).bytes();
  return height;
}

/// Whether a stage has one before it, and one after, that it exchanges activations with.
struct Neighbours {
  bool before = false;
  bool after = false;
};
Neighbours neighbours(const Layout& layout, std::int32_t stage) {
  if (layout.pp == 1) return {};
  const bool round = layout.vpp > 1;
  return {stage > 0 || round, stage + 1 < layout.pp || round};
}

/// Whether passes of one direction follow one another: not where forward and backward take turns.
bool passes_follow(const StageContext& context) {
  const Layout& layout = *context.layout;
  if (chunks_of_stage(layout) > 1) return true;
  const bool in_turn =
      layout.schedule == PipelineSchedule::one_f_one_b && context.stage + 1 == layout.pp;
  return context.num_microbatches > 1 && layout.pp > 1 && !in_turn;
}

std::int64_t in_flight_bytes(const StageParts& parts, const StageContext& context,
                             std::int32_t chunk, bool backward) {
  if (context.layout->offload_activations) return 0;
  if (parts.in_flight.empty()) return other_passes(parts, context, chunk, backward).bytes;
  return parts.in_flight[static_cast<std::size_t>(chunk)][backward ? 1 : 0];
}

}  // namespace

Amount message_buffers(const StageParts& parts, const StageContext& context) {
  const Layout& layout = *context.layout;
  const Neighbours with = neighbours(layout, context.stage);
  const bool v = layout.vpp == 1 && chunks_of_stage(layout) > 1;
  // A stage still holds the gradient it sent when the next micro-batch runs.
  if (!plans_buffers(*context.rules->engine)) {
    return {with.before || (v && with.after) ? 1 : 0, parts.boundary};
  }
  const MessageSlots slots = message_slots(layout, context.stage, context.num_microbatches);
  // Forward from the stage before and gradients back; on a V both with each neighbour.
  const std::int64_t before = slots.receive_forward + slots.send_backward;
  const std::int64_t after = slots.receive_backward + slots.send_forward;
  const std::int64_t buffers =
      (with.before ? before + (v ? after : 0) : 0) + (with.after ? after + (v ? before : 0) : 0);
  return {buffers, parts.boundary};
}

std::int64_t offload_room(const StageParts& parts, const StageContext& context) {
  const std::int64_t edges = passes_follow(context) ? parts.first_saved + parts.last_saved : 0;
  return std::max(parts.pair_saved, edges);
}

std::int64_t left_behind(const LayerMemory& layer, bool whole, const Layout& layout) {
  return whole || layout.zero_stage < 3 ? 0 : layer.left_behind;
}

namespace {

/// Of the layers after `moment`, whose backward pass is over.
Amount left_by_layers(const StageParts& parts, const StageMoment& moment, const Layout& layout) {
  std::int64_t bytes = 0;
  std::int64_t after = moment.after.gathered();
  for (std::size_t r = parts.in_order.size(); r-- > 0 && after > 0;) {
    const StageParts::OrderedRun& run = parts.in_order[r];
    const std::int64_t each = std::max<std::int64_t>(gathered_unit(*run.layer).gathered(), 1);
    const std::int64_t done = std::min<std::int64_t>(run.count, after / each);
    after -= run.count * each;
    // Of every n-th block that runs again, the first is the first of all.
    const std::int64_t interval = run.layer->recompute_interval;
    const std::int64_t again =
        ceil_div(std::int64_t{run.count}, interval) - ceil_div(run.count - done, interval);
    bytes += again * left_behind(*run.layer, false, layout);
  }
  return {1, bytes};
}

}  // namespace

OtherLayers other_layers(const StageMoment& moment, bool backward, const StageParts& parts,
                         const StageContext& context) {
  const LayerMemory& layer = *moment.layer;
  const std::int64_t own = moment.whole ? layer.saved_whole : layer.saved;
  OtherLayers saved;
  if (context.layout->offload_activations) {
    const bool first = moment.saved_beside == 0;
    const std::int64_t other = first && passes_follow(context) ? parts.last_saved : 0;
    const bool planned = plans_buffers(*context.rules->engine);
    saved.on_its_way = {
        1, planned ? offload_room(parts, context) - own : std::max(moment.saved_beside, other)};
    return saved;
  }
  if (backward && defers_weight_gradients(*context.layout)) {
    const std::int64_t all = parts.chunk_saved[static_cast<std::size_t>(moment.chunk)];
    saved.later = {1, all - own - moment.saved_before};
  }
  const bool leaves = context.rules->engine->gather == GatherBuffer::rate_limited;
  if (backward && leaves) saved.left_behind = left_by_layers(parts, moment, *context.layout);
  saved.alike = {moment.alike_before, moment.layer->saved};
  saved.others = {1, moment.saved_before - saved.alike.bytes()};
  return saved;
}

bool ends_backward(const StageBuffers& buffers, bool joined) {
  return joined &&
         (buffers.bucket_use == BucketUse::at_end || buffers.bucket_use == BucketUse::all_once);
}

Amount gradients_made(const StageBuffers& buffers, const StageMoment& moment, bool backward,
                      bool joined, const StageParts& parts, const StageContext& context,
                      const StageStates& states) {
  Amount made = states.late_gradients;
  if (gradients_wait(context)) return {0, made.bytes_each};
  if (context.num_microbatches > 1) return made;
  const std::int64_t all = parts.dense + parts.routed;
  if (!backward || all == 0) return {0, made.bytes_each};
  if (ends_backward(buffers, joined)) return made;
  if (buffers.bucket_use == BucketUse::as_made) {
    const BucketCopies::Reduction* own = joined ? buffers.copies.at(moment) : nullptr;
    if (own != nullptr) return {own->kept, made.bytes_each};
    return {buffers.copies.any_before(moment) ? made.count : 0, made.bytes_each};
  }
  // A reduction's output is there with its input.
  const LayerParameters& own = moment.layer->parameters;
  const bool reduces = moment.instant == Instant::reduction;
  const std::int64_t ready = moment.ready.elements() - waiting_root(parts, context, moment).count +
                             (reduces ? own.dense + own.routed : 0);
  made.count = static_cast<std::int64_t>(static_cast<double>(made.count) *
                                         static_cast<double>(ready) / static_cast<double>(all));
  return made;
}

namespace {

/// Whether backward may be fullest while other layers run than the last of their kind: what is
/// done stays or queues, or the unit that is being reduced is larger.
bool fills_up(const StageContext& context, const StageStates& states) {
  const EngineProfile& engine = *context.rules->engine;
  const bool gradients = context.num_microbatches == 1 && states.late_gradients.bytes() > 0;
  const bool by_unit = engine.gradient_buffer != GradientBuffer::contiguous &&
                       !plans_buffers(engine) && context.layout->zero_stage >= 2;
  return gradients || by_unit || bucket_use(context) != BucketUse::none;
}

/// Between the first and the last layer of a kind, when the layers after it have `wanted` elements:
/// none where they have sooner or never.
std::optional<StageMoment> when_after(const StageMoment& first, const StageMoment& last,
                                      std::int64_t wanted) {
  const std::int64_t most = first.after.elements();
  const std::int64_t least = last.after.elements();
  if (wanted <= least || wanted >= most) return std::nullopt;
  const double way = static_cast<double>(wanted - least) / static_cast<double>(most - least);
  StageMoment between = first;
  between.whole = last.whole;
  between.alike_before = 0;
  between.saved_before += static_cast<std::int64_t>(
      (1 - way) * static_cast<double>(last.saved_before - first.saved_before));
  between.after = {wanted, 0, 0, 0};
  between.ready = {first.ready.elements() - (most - wanted), 0, 0, 0};
  between.before = {last.before.gathered() - (wanted - least), 0, 0, 0};
  between.outside_before = last.outside_before;
  return between;
}

/// Whether a pipeline's gradients of a layer lie beside those of earlier micro-batches.
bool join_in_pipeline(const StageMoment& moment, const StageParts& parts,
                      const StageContext& context) {
  return context.layout->pp > 1 && gradients_beside(parts, context, *moment.layer).layer.count > 0;
}

/// Looks for the fullest among moments.
class Search {
 public:
  Search(const StageParts& parts, const StageContext& context, const StageStates& states,
         bool first_pass)
      : parts_(parts),
        context_(context),
        states_(states),
        shared_{0, stage_buffers(parts, context)},
        joins_root_(joins_root(context)) {
    shared_.buffers.first_pass = first_pass;
    fullest_.first_pass = first_pass;
  }

  /// \param joined  when the layer's gradients are joined, besides
  void look(const StageMoment& moment, bool backward, bool joined = false) {
    const bool several = backward && join_in_pipeline(moment, parts_, context_);
    shared_.buffers.first_microbatch = several;
    consider(moment, backward, joined);
    if (!several) return;
    shared_.buffers.first_microbatch = false;
    consider(moment, backward, joined);
  }
  /// Before and after a block of FSDP2's runs backward, where that may be fuller: where the unit
  /// before it is none to gather ahead, experts are copied twice, or gradients waited.
  void look_beside(StageMoment moment) {
    const LayerMemory& layer = *moment.layer;
    const bool gathers = context_.rules->engine->gather == GatherBuffer::copy_out &&
                         context_.layout->zero_stage >= 3 && is_block(layer.role);
    if (!gathers || own_kernels(layer)) return;
    const bool first = moment.before.gathered() == moment.outside_before;
    if (first || layer.parameters.cut_by_rows > 0) {
      moment.instant = Instant::copied_out;
      look(moment, true);
    }
    if (!reduces_waiting(context_)) return;
    moment.instant = Instant::reduction;
    look(moment, true);
  }
  /// Backward, when it has come to `first`, and on the way there from the last of its kind.
  void look_further(const StageMoment& first) {
    look(first, true);
    look_beside(first);
    const bool as_made = shared_.buffers.bucket_use == BucketUse::as_made;
    if (!shared_.buffers.reduces_queued && !as_made) return;
    std::vector<std::int64_t> fullest;
    if (as_made) {
      // What is ready besides what comes after in the chunk is of other chunks.
      const std::int64_t others = first.ready.elements() - first.after.elements();
      for (const std::int64_t ready : shared_.buffers.copies.first_ready()) {
        fullest.push_back(ready - others);
      }
    } else {
      fullest = shared_.buffers.units.fullest_after();
    }
    for (const StageMoment& last : parts_.moments) {
      if (last.layer != first.layer || last.chunk != first.chunk) continue;
      for (const std::int64_t after : fullest) {
        const std::optional<StageMoment> full = when_after(first, last, after);
        if (full) look(*full, true);
      }
    }
  }
  FullestMoment fullest() {
    if (fullest_.moment.layer == nullptr) return fullest_;
    const StageMoment& moment = fullest_.moment;
    shared_.buffers.first_microbatch = fullest_.first_microbatch;
    shared_.in_flight = in_flight(moment, fullest_.backward, fullest_.joined);
    fullest_.bytes = bytes_with(shared_, fullest_, parts_, context_, states_);
    return fullest_;
  }

 private:
  void consider(const StageMoment& moment, bool backward, bool joined) {
    shared_.in_flight = in_flight(moment, backward, joined);
    const std::int64_t height =
        height_of(shared_, moment, backward, joined, parts_, context_, states_);
    if (backward && !joined && joins(moment)) consider(moment, true, true);
    if (height <= most_) return;
    most_ = height;
    fullest_.moment = moment;
    fullest_.backward = backward;
    fullest_.joined = joined;
    fullest_.first_microbatch = shared_.buffers.first_microbatch;
  }
  /// Bytes of other passes.
  std::int64_t in_flight(const StageMoment& moment, bool backward, bool joined) {
    if (ends_backward(shared_.buffers, joined)) return 0;
    const bool joins =
        backward && !shared_.buffers.first_microbatch && join_in_pipeline(moment, parts_, context_);
    if (moment.chunk != chunk_) {
      chunk_ = moment.chunk;
      in_flight_ = {in_flight_bytes(parts_, context_, chunk_, false),
                    in_flight_bytes(parts_, context_, chunk_, true)};
      joining_.reset();
    }
    if (!joins) return in_flight_[backward ? 1 : 0];
    if (!joining_) joining_ = other_passes_when_joining(parts_, context_, chunk_).bytes;
    return *joining_;
  }
  /// Whether gradients are joined when the layer is done, or while it makes them.
  bool joins(const StageMoment& moment) const {
    const StageBuffers& buffers = shared_.buffers;
    switch (buffers.bucket_use) {
      case BucketUse::none:
        return joins_root_;
      case BucketUse::as_made:
        return buffers.copies.at(moment) != nullptr;
      case BucketUse::at_end:
      case BucketUse::all_once:
        break;
    }
    return moment.chunk == 0 && moment.before.gathered() == 0;
  }

  const StageParts& parts_;
  const StageContext& context_;
  const StageStates& states_;
  Shared shared_;
  bool joins_root_ = false;
  FullestMoment fullest_;
  std::int64_t most_ = -1;
  std::int32_t chunk_ = -1;
  std::array<std::int64_t, 2> in_flight_{};
  std::optional<std::int64_t> joining_;  // of backward passes that join earlier micro-batches
};

}  // namespace

std::int64_t least_pass_bytes(const StageParts& parts, const StageContext& context) {
  std::int64_t most = 0;
  for (const StageMoment& moment : parts.moments) {
    if (moment.instant == Instant::reduction) continue;
    most = std::max(most, in_flight_bytes(parts, context, moment.chunk, false) +
                              other_layers(moment, false, parts, context).bytes());
  }
  return most == 0 ? 0 : most + parts.tables + message_buffers(parts, context).bytes();
}

HeldPasses held_at(const FullestMoment& at, const StageParts& parts, const StageContext& context) {
  const bool joins =
      at.backward && !at.first_microbatch && join_in_pipeline(at.moment, parts, context);
  return joins ? other_passes_when_joining(parts, context, at.moment.chunk).held
               : other_passes(parts, context, at.moment.chunk, at.backward).held;
}

FullestMoment fullest_moment(const StageParts& parts, const StageContext& context,
                             const StageStates& states, bool first_pass) {
  Search search(parts, context, states, first_pass);
  for (const StageMoment& moment : parts.moments) {
    if (moment.instant != Instant::reduction) search.look(moment, false);
    search.look(moment, true);
    search.look_beside(moment);
    if (!first_pass || moment.layer->role != LayerRole::head) continue;
    StageMoment beside_loss = moment;
    beside_loss.instant = Instant::beside_loss;
    search.look(beside_loss, true);
  }
  if (fills_up(context, states)) {
    for (const StageMoment& inner : parts.inner_moments) search.look_further(inner);
  }
  return search.fullest();
}

}  // namespace shardwise
