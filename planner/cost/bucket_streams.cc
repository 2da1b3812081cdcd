#include "planner/cost/bucket_streams.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace shardwise {

BucketStreams::BucketStreams(const StageTimes& stages, const LeafContext& context,
                             const std::vector<ChunkSpan>& spans, const PassLosses& losses,
                             double stretch)
    : pipeline_(stages.pipeline),
      engine_(*context.rules->engine),
      layout_(*context.layout),
      prices_(context),
      spans_(spans),
      losses_(losses),
      stretch_(stretch),
      microbatches_(static_cast<double>(context.num_microbatches)) {
  const double limit =
      std::max(static_cast<double>(engine_.bucket_elements),
               static_cast<double>(engine_.bucket_elements_per_rank * layout_.dp() * layout_.cp));
  by_unit_ = engine_.bucket_elements == 0 || engine_.gradient_buffer == GradientBuffer::unit_queue;
  limit_ = by_unit_ ? 1 : limit;
  every_ = layout_.reduce_every_microbatch && prices_.placement().gradients != Placement::replicate;
}

double BucketStreams::late(std::size_t stage) {
  double gathered = 0;
  double late = 0;
  for (std::size_t c = 0; c < chunks(); ++c) {
    const std::size_t place = stage * chunks() + c;
    fill(stage, c);
    for (std::size_t i = buckets_.size(); i-- > 0;) {
      gathered += gather(buckets_[i]);
      late = std::max(late, gathered - spans_[place].begin.value() - buckets_[i].needed);
    }
  }
  return late;
}

void BucketStreams::hold(std::size_t stage, PassStreams& passes) {
  double gathered = 0;
  for (std::size_t c = 0; c < chunks(); ++c) {
    fill(stage, c);
    for (std::size_t i = buckets_.size(); i-- > 0;) {
      gathered += gather(buckets_[i]);
      passes.hold(stage * chunks() + c, buckets_[i].layer, gathered);
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
  double inner = overlaps ? 0 : last;
  double outer = 0;
  double moved = 0;
  double moved_outer = 0;
  // In the order in which their last passes end.
  order_.resize(chunks());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::sort(order_, {}, [&](std::size_t c) { return spans_[stage * chunks() + c].end; });
  for (const std::size_t c : order_) {
    const std::size_t place = stage * chunks() + c;
    fill(stage, c);
    std::ranges::stable_sort(buckets_, {}, &Bucket::ready);
    seconds_.clear();
    for (const Bucket& bucket : buckets_) seconds_.push_back(reduce(bucket));
    const ChunkSpan& span = spans_[place];
    const double each = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
    const double earlier = every_ && overlaps ? microbatches_ - 1 : 0;
    moved += each * (earlier + 1);
    if (pipeline_.slots->stages == 1) {
      const double apart = (span.end - span.begin).value() / microbatches_;
      for (double left = earlier; left > 0; --left) {
        follow(inner, span.end.value() - apart * left);
      }
    } else if (earlier > 0) {
      inner = std::max(inner, span.begin.value()) + each * earlier;
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Bucket& bucket = buckets_[i];
      const double ready = overlaps ? span.end.value() - length_ + bucket.ready : inner;
      inner = std::max(inner, ready) + seconds_[i];
      const double shard = reduce_outer(bucket);
      if (shard > 0) outer = std::max(outer, inner) + shard;
      moved_outer += shard;
    }
  }
  const double all = std::max({last, inner, outer});
  // What runs beside the passes slows them.
  const double after = all - last;
  return all +
         losses_.backward.to(std::max(0.0, moved - after), std::max(0.0, moved_outer - after));
}

void BucketStreams::follow(double& reduced, double end) const {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    reduced = std::max(reduced, end - length_ + buckets_[i].ready) + seconds_[i];
  }
}

void BucketStreams::fill(std::size_t stage, std::size_t chunk) {
  const std::size_t place = stage * chunks() + chunk;
  const bool single = engine_.gradient_buffer == GradientBuffer::contiguous &&
                      (!layout_.overlap_grad_reduce || stage > 0 || chunk > 0);
  const double limit = single && !by_unit_ ? std::numeric_limits<double>::infinity() : limit_;
  const LayerPart last = spans_[place].last;
  buckets_.clear();
  length_ = 0;
  double forward = pipeline_.chunk_time[place].forward.value() * stretch_;
  std::array<double, 2> open = {0, 0};
  double ready = 0;
  std::size_t at = 0;
  for (const PacedRun& run : pipeline_.runs_of(place)) at += static_cast<std::size_t>(run.layers);
  const auto close = [&](std::size_t group, double elements, double needed) {
    Bucket bucket;
    (group == 0 ? bucket.dense : bucket.routed) = elements;
    bucket.ready = ready;
    bucket.needed = needed;
    bucket.layer = at;
    buckets_.push_back(bucket);
    open[group] -= elements;
  };
  const auto runs = pipeline_.runs_of(place);
  for (std::size_t r = runs.size(); r-- > 0;) {
    const LayerPace& layer = pipeline_.layers[static_cast<std::size_t>(runs[r].kind)];
    for (std::int32_t i = 0; i < runs[r].layers; ++i) {
      --at;
      length_ += layer.time.of(last).value() * stretch_;
      // A layer that puts nothing off was complete before a pass of weight gradients.
      if (last != LayerPart::backward_weight || layer.time.weight_gradient > Seconds(0)) {
        ready = length_;
      } else if (by_unit_) {
        ready = 0;
      }
      forward -= layer.time.forward.value() * stretch_;
      open[0] += static_cast<double>(layer.dense);
      open[1] += static_cast<double>(layer.routed);
      for (const std::size_t group : {std::size_t{0}, std::size_t{1}}) {
        // The tensor that crosses the line is taken in: a table whole.
        if (open[group] >= limit && (by_unit_ || layer.root)) {
          close(group, open[group], forward);
        }
        while (open[group] >= limit) close(group, limit, forward);
      }
    }
  }
  for (const std::size_t group : {std::size_t{0}, std::size_t{1}}) {
    if (open[group] > 0) close(group, open[group], forward);
  }
}

}  // namespace shardwise
