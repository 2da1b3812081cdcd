#include "planner/cost/memory/moment_pass.h"

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

}  // namespace

const PassMemory& pass_of(const StageBuffers& buffers, const StageMoment& moment, bool backward) {
  const LayerMemory& layer = *moment.layer;
  if (moment.instant == Instant::reduction) return layer.reduction;
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
