#include "planner/cost/memory/moment_pass.h"

#include <utility>

namespace shardwise {
namespace {

PassMemory reducing_pass(const StageBuffers& buffers, const StageMoment& moment,
                         const StageContext& context) {
  const LayerMemory& layer = *moment.layer;
  const BucketCopies::Reduction* reduction = buffers.copies.at(moment);
  if (reduction == nullptr) return {};
  PassMemory pass;
  if (reduction->begins > 0) {
    pass = when_made(moment.whole ? layer.leaving_whole : layer.leaving, reduction->made);
  }
  pass.gradients = reduction->beside * context.rules->weight_bytes;
  pass.peak += pass.gradients;
  return pass;
}

/// Of a block whose gradients are reduced: the gradient that it hands back. Gradients that waited
/// are no tensors of this pass.
PassMemory when_reduced(const StageBuffers& buffers, const LayerMemory& layer) {
  PassMemory pass = layer.reduction;
  if (is_block(layer.role)) pass.peak = pass.made = layer.input;
  if (buffers.gradients_leave) pass.peak -= std::exchange(pass.gradients, 0);
  return pass;
}

/// Of a block before its first operation runs backward: what it kept, and the gradient of its
/// output.
PassMemory when_copied_out(const StageMoment& moment) {
  PassMemory pass;
  pass.kept = moment.whole ? moment.layer->saved_whole : moment.layer->saved;
  pass.handed = moment.layer->input;
  pass.peak = pass.kept + pass.handed;
  return pass;
}

}  // namespace

PassMemory pass_of(const StageBuffers& buffers, const StageMoment& moment, bool backward) {
  const LayerMemory& layer = *moment.layer;
  if (moment.instant == Instant::reduction) return when_reduced(buffers, layer);
  if (moment.instant == Instant::copied_out) return when_copied_out(moment);
  if (moment.instant == Instant::beside_loss) {
    return backward ? layer.backward_beside_loss : layer.forward_beside_loss;
  }
  if (backward) return backward_of(layer, moment.whole, buffers.gradients_leave);
  return moment.whole ? layer.forward_whole : layer.forward;
}

PassMemory joined_pass(const StageBuffers& buffers, const StageMoment& moment,
                       const StageContext& context) {
  if (buffers.bucket_use != BucketUse::none) return reducing_pass(buffers, moment, context);
  const LayerMemory& layer = *moment.layer;
  PassMemory pass;
  const bool recomputed = context.layout->recompute == Recompute::full && !moment.whole;
  if (recomputed && is_block(layer.role)) pass.kept = layer.saved;
  pass.gradients = (layer.parameters.dense + layer.parameters.routed) * context.rules->weight_bytes;
  pass.handed = pass.made = layer.input;
  pass.peak = pass.kept + pass.gradients + pass.handed + pass.made;
  return pass;
}

}  // namespace shardwise
