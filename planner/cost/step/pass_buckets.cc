// Buckets of a step followed layer by layer: of updated parameters before the first passes, of
// gradients beside the last ones.

#include <algorithm>

#include "planner/cost/step/pass_streams.h"
#include "planner/spec/plan/gradient_reductions.h"

namespace shardwise {

void PassStreams::hold(std::size_t place, std::size_t layer, double seconds) {
  std::vector<double>& updated = stages_[place / per_stage_].updated;
  Held& held = held_[base_[place] + layer];
  if (held.buckets++ == 0) held.first_bucket = updated.size();
  updated.push_back(seconds);
}

void PassStreams::issue_updated(Stage& stage, HostClock& issuer) {
  const std::size_t next = stage.there.size();
  if (next == stage.updated.size()) return;
  const double before = next > 0 ? stage.there.back() : 0;
  const double seconds = stage.updated[next];
  stage.there.push_back(seconds > 0 ? std::max(before, issuer.add()) + seconds : before);
}

double PassStreams::updated(Stage& stage, HostClock& issuer, const Held& layer) {
  double there = 0;
  for (std::size_t i = 0; i < layer.buckets; ++i) {
    const std::size_t bucket = layer.first_bucket + i;
    while (stage.there.size() <= bucket) issue_updated(stage, issuer);
    there = std::max(there, stage.there[bucket]);
    if (stage.there.size() == bucket + 1) issue_updated(stage, issuer);
  }
  return there;
}

void PassStreams::complete(std::size_t place, std::size_t layer, const ReducedBucket& bucket) {
  buckets_ = true;
  held_[base_[place] + layer].completes.push_back(bucket);
}

void PassStreams::sum_up(Stage& stage, HostClock& issuer) {
  if (stage.due <= 0) return;
  stage.compute = std::max({stage.compute, stage.reduce, issuer.add()}) + stage.due;
  issuer.add();
  stage.due = 0;
}

void PassStreams::dispatch(Stage& stage, HostClock& issuer, const Held& layer, bool last) {
  for (const ReducedBucket& bucket : layer.completes) {
    // What moves nothing, of experts that one rank has for itself, waits for no bucket before it.
    if (bucket.reduce > 0) {
      sum_up(stage, issuer);
      stage.due = bucket.sum;
      stage.reduce = std::max({stage.reduce, stage.compute, issuer.add()}) + bucket.reduce;
    }
    if (reduces_outer_after(last) && bucket.outer > 0) {
      const double made = bucket.reduce > 0 ? stage.reduce : stage.compute;
      stage.outer = std::max({stage.outer, made, issuer.add()}) + bucket.outer;
    }
  }
}

void PassStreams::finish() {
  if (!buckets_) return;
  for (std::size_t place = 0; place < base_.size(); ++place) {
    Stage& stage = stages_[place / per_stage_];
    const std::size_t layers = kinds_[place].size();
    for (std::size_t i = layers; i-- > 0 && !rules_.buckets_beside;) {
      dispatch(stage, hosts_.of(static_cast<std::int32_t>(place / per_stage_)),
               held_[base_[place] + i], true);
    }
  }
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    sum_up(stages_[s], hosts_.of(static_cast<std::int32_t>(s)));
  }
}

}  // namespace shardwise
