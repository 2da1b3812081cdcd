#include "planner/cost/bucket_streams.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/cost/host_issue.h"
#include "planner/cost/unit_elements.h"

namespace shardwise {

BucketStreams::BucketStreams(const StageTimes& stages, const LeafContext& context,
                             const PipelineRun& run, const PassLosses& losses)
    : pipeline_(stages.pipeline),
      engine_(*context.rules->engine),
      layout_(*context.layout),
      prices_(context),
      spans_(run.spans),
      losses_(losses) {
  limit_ =
      std::max(static_cast<double>(engine_.bucket_elements),
               static_cast<double>(engine_.bucket_elements_per_rank * layout_.dp() * layout_.cp));
  waits_ = host_rules(context, Seconds(0)).waits;
  by_unit_ = engine_.bucket_elements == 0 || engine_.gradient_buffer == GradientBuffer::unit_queue;
}

double BucketStreams::late(std::size_t stage, double begins) {
  double gathered = 0;
  double late = 0;
  for (std::size_t c = 0; c < chunks(); ++c) {
    const std::size_t place = stage * chunks() + c;
    fill(stage, c);
    for (std::size_t i = buckets_.size(); i-- > 0;) {
      gathered += gather(buckets_[i]);
      const double begin = spans_[place].begin.value() + begins;
      late = std::max(late, gathered - begin - buckets_[i].needed);
      // A host that waits for what the first pass is handed issues no more than one before.
      if (waits_) gathered = std::max(gathered, begin);
    }
  }
  return late;
}

void BucketStreams::hold(std::size_t stage, PassStreams& passes) {
  for (std::size_t c = 0; c < chunks(); ++c) {
    fill(stage, c);
    for (std::size_t i = buckets_.size(); i-- > 0;) {
      passes.hold(stage * chunks() + c, buckets_[i].layer, gather(buckets_[i]));
    }
  }
}

void BucketStreams::complete(std::size_t stage, PassStreams& passes) {
  for (std::size_t c = 0; c < chunks(); ++c) {
    fill(stage, c);
    const bool sums = prices_.sums_in_compute();
    for (const Bucket& bucket : buckets_) {
      passes.complete(stage * chunks() + c, bucket.maker,
                      {prices_.reduce(bucket.dense, bucket.routed).value(), reduce_outer(bucket),
                       sums ? prices_.sums(bucket.dense, bucket.routed).value() : 0});
    }
  }
}

double BucketStreams::gathers(std::size_t stage) {
  double sum = 0;
  for (std::size_t c = 0; c < chunks(); ++c) {
    fill(stage, c);
    for (const Bucket& bucket : buckets_) sum += gather(bucket);
  }
  return sum;
}

double BucketStreams::reduced(std::size_t stage) {
  const bool overlaps = layout_.overlap_grad_reduce && !engine_.flattens_gradients;
  double last = 0;
  for (std::size_t c = 0; c < chunks(); ++c) {
    last = std::max(last, spans_[stage * chunks() + c].end.value());
  }
  Reductions so_far;
  // In the order in which their last passes end.
  order_.resize(chunks());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::sort(order_, {}, [&](std::size_t c) { return spans_[stage * chunks() + c].end; });
  for (const std::size_t c : order_) {
    const std::size_t place = stage * chunks() + c;
    fill(stage, c);
    std::ranges::stable_sort(buckets_, {}, &Bucket::ready);
    for (Bucket& bucket : buckets_) {
      bucket.reduces = prices_.reduce(bucket.dense, bucket.routed).value();
    }
    for (const Bucket& bucket : buckets_) {
      reduce(bucket, overlaps ? complete(place, bucket) : last, so_far);
      const double shard = reduce_outer(bucket);
      if (shard > 0) so_far.outer = std::max(so_far.outer, so_far.inner) + shard;
      so_far.moved_outer += shard;
    }
  }
  const double all = std::max({last, so_far.inner, so_far.outer});
  // What runs beside the passes slows them.
  const double after = all - last;
  return all + losses_.backward.to(std::max(0.0, so_far.moved - after),
                                   std::max(0.0, so_far.moved_outer - after));
}

double BucketStreams::complete(std::size_t place, const Bucket& bucket) const {
  const ChunkSpan& span = spans_[place];
  return span.end.value() - length_ + bucket.ready;
}

void BucketStreams::reduce(const Bucket& bucket, double ready, Reductions& so_far) {
  so_far.inner = std::max(so_far.inner, ready) + bucket.reduces;
  so_far.moved += bucket.reduces;
}

void BucketStreams::fill(std::size_t stage, std::size_t chunk) {
  const std::size_t place = stage * chunks() + chunk;
  const bool single = engine_.gradient_buffer == GradientBuffer::contiguous &&
                      (!layout_.overlap_grad_reduce || stage > 0 || chunk > 0);
  const auto known = std::ranges::find_if(filled_before_, [&](const Filled& each) {
    return each.single == single && spans_[each.place].last == spans_[place].last &&
           std::ranges::equal(pipeline_.runs_of(each.place), pipeline_.runs_of(place));
  });
  if (known != filled_before_.end()) {
    buckets_ = known->buckets;
    length_ = known->length;
    return;
  }
  fill(place, single);
  filled_before_.push_back({place, single, length_, buckets_});
}

void BucketStreams::fill(std::size_t place, bool single) {
  const LayerPart last = spans_[place].last;
  const auto runs = pipeline_.runs_of(place);
  buckets_.clear();
  open_ = {0, 0};
  length_ = 0;
  next_ = {};
  next_.needed = pipeline_.chunk_time[place].forward.value();
  for (const PacedRun& run : runs) next_.layer += static_cast<std::size_t>(run.layers);
  for (std::size_t r = runs.size(); r-- > 0;) {
    const LayerPace& layer = pipeline_.layers[static_cast<std::size_t>(runs[r].kind)];
    for (std::int32_t i = 0; i < runs[r].layers; ++i) {
      --next_.layer;
      length_ += layer.time.of(last).value();
      // A layer that puts nothing off was complete before a pass of weight gradients.
      if (last != LayerPart::backward_weight || layer.time.weight_gradient > Seconds(0)) {
        next_.ready = length_;
        next_.maker = next_.layer;
      } else if (by_unit_) {
        next_.ready = 0;
        next_.maker = next_.layer;
      }
      next_.needed -= layer.time.forward.value();
      if (single || by_unit_) {
        add(layer);
      } else {
        // The table of another stage is registered after the layer that uses it.
        if (layer.copied > 0) add({layer.copied, 1, 1, false});
        const std::vector<TensorGroup>& tensors = layer.memory->parameters.in_order;
        for (std::size_t t = tensors.size(); t-- > 0;) add(tensors[t]);
      }
    }
  }
  close(0, open_[0]);
  close(1, open_[1]);
}

void BucketStreams::add(const LayerPace& layer) {
  std::array<std::int64_t, 2> elements = {layer.dense, layer.routed};
  if (by_unit_ && prices_.placement().optimizer != Placement::replicate) {
    const UnitElements unit = unit_elements(*layer.memory, layer.copied, engine_, layout_,
                                            prices_.rules().shard_multiple);
    elements = {unit.padded_dense, unit.padded_routed};
  }
  for (std::size_t group = 0; group < elements.size(); ++group) {
    if (elements[group] == 0) continue;
    open_[group] += static_cast<double>(elements[group]);
    filled_[group] = next_;
    if (by_unit_) close(group, open_[group]);
  }
}

void BucketStreams::add(const TensorGroup& tensors) {
  const std::size_t group = tensors.routed ? 1 : 0;
  double& open = open_[group];
  const auto size = static_cast<double>(tensors.rows * tensors.row_elements);
  auto left = static_cast<double>(tensors.count);
  if (engine_.flattens_gradients) {  // cut wherever the limit falls
    open += size * left;
    filled_[group] = next_;
    while (open >= limit_) close(group, limit_);
    return;
  }
  const bool whole = engine_.gradient_buffer == GradientBuffer::copy_in;  // none over the limit
  while (left > 0) {
    const double room = (limit_ - open) / size;
    if (whole && room < 1 && open > 0) {
      close(group, open);
      continue;
    }
    const double taken = std::min(left, std::max(1.0, whole ? std::floor(room) : std::ceil(room)));
    open += taken * size;
    filled_[group] = next_;
    left -= taken;
    if (open >= limit_) close(group, open);
  }
}

void BucketStreams::close(std::size_t group, double elements) {
  if (elements <= 0) return;
  Bucket& bucket = buckets_.emplace_back(filled_[group]);
  (group == 0 ? bucket.dense : bucket.routed) = elements;
  open_[group] -= elements;
}

}  // namespace shardwise
