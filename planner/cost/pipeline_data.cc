#include "planner/cost/pipeline_data.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/cost/host_passes.h"
#include "planner/cost/pass_streams.h"
#include "planner/cost/unit_prices.h"

namespace shardwise {
namespace {

/// Parameters that are reduced, and gathered, as one.
struct Bucket {
  double dense = 0;
  double routed = 0;
  double ready = 0;   // seconds of backward before its gradients are there
  double needed = 0;  // seconds of forward before its parameters are
};

/// Buckets of whole parameters on their way.
class BucketStreams {
 public:
  BucketStreams(const StageTimes& stages, const LeafContext& context,
                const std::vector<ChunkSpan>& spans, const PassLosses& losses, double stretch)
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
    by_unit_ =
        engine_.bucket_elements == 0 || engine_.gradient_buffer == GradientBuffer::unit_queue;
    limit_ = by_unit_ ? 1 : limit;
    every_ =
        layout_.reduce_every_microbatch && prices_.placement().gradients != Placement::replicate;
    gathers_ = prices_.placement().optimizer != Placement::replicate;
  }

  /// How much later than alone `stage` begins, as its first passes wait for parameters.
  double late(std::size_t stage) {
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
    // Those of later stages come while the pipeline fills; beside the first one's passes they slow
    // them.
    return stage == 0 ? late + losses_.forward.to(gathered - late, 0) : late;
  }
  /// All gathers of `stage`, one after the other.
  double gathers(std::size_t stage) {
    double sum = 0;
    for (std::size_t c = 0; c < chunks(); ++c) {
      fill(stage, c);
      for (const Bucket& bucket : buckets_) sum += gather(bucket);
    }
    return sum;
  }

  /// When the last reduction of `stage` has ended.
  double reduced(std::size_t stage) {
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

  bool gathers_updated() const { return gathers_; }

 private:
  std::size_t chunks() const { return static_cast<std::size_t>(pipeline_.slots->chunks); }

  double reduce(const Bucket& b) { return prices_.reduce(b.dense, b.routed).value(); }
  double reduce_outer(const Bucket& b) { return prices_.reduce_outer(b.dense, b.routed).value(); }
  double gather(const Bucket& b) { return prices_.gather(b.dense, b.routed).value(); }

  /// Reductions of a micro-batch whose backward pass ends at `end`. \param reduced  those so far
  void follow(double& reduced, double end) const {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      reduced = std::max(reduced, end - length_ + buckets_[i].ready) + seconds_[i];
    }
  }

  /// The buckets of a chunk in the order in which its last pass completes them.
  void fill(std::size_t stage, std::size_t chunk) {
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
    const auto close = [&](std::size_t group, double elements, double needed) {
      Bucket bucket;
      (group == 0 ? bucket.dense : bucket.routed) = elements;
      bucket.ready = ready;
      bucket.needed = needed;
      buckets_.push_back(bucket);
      open[group] -= elements;
    };
    const auto runs = pipeline_.runs_of(place);
    for (std::size_t r = runs.size(); r-- > 0;) {
      const LayerPace& layer = pipeline_.layers[static_cast<std::size_t>(runs[r].kind)];
      for (std::int32_t i = 0; i < runs[r].layers; ++i) {
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

  const PipelineTimes& pipeline_;
  const EngineProfile& engine_;
  const Layout& layout_;
  UnitPrices prices_;
  const std::vector<ChunkSpan>& spans_;
  PassLosses losses_;
  double stretch_;
  double microbatches_;
  bool by_unit_ = false;
  bool every_ = false;
  bool gathers_ = false;
  double limit_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<double> seconds_;     // of their reductions
  std::vector<std::size_t> order_;  // of chunks
  double length_ = 0;               // of the pass that completes them
};

}  // namespace

bool only_offloads(const LeafContext& context) {
  return context.layout->offload_activations && !reduces_by_unit(context);
}

StreamedPasses streamed_passes(const StageTimes& stages, const LeafContext& context,
                               const StageKernels& kernels, double stretch, SlotEnds& ends) {
  StreamedPasses passes;
  if (only_offloads(context)) {
    HostPasses beside_host(stages, context, stretch, ends.copied);
    passes.run = sweep_pipeline(*stages.pipeline.slots, beside_host, stages.hop, ends.end);
    passes.end = passes.run.length;
    return passes;
  }
  PassStreams streams(stages, context, pass_losses(kernels.slowest, context), stretch);
  passes.run = sweep_pipeline(*stages.pipeline.slots, streams, stages.hop, ends.end);
  passes.end = streams.end() + passes.run.unswept;
  return passes;
}

PipelineData pipeline_data(const StageTimes& stages, const LeafContext& context,
                           const StageKernels& kernels, double stretch,
                           const StreamedPasses* streamed) {
  const PipelineTimes& pipeline = stages.pipeline;
  const Layout& layout = *context.layout;
  PipelineRun run;
  PipelineData data;
  if (streamed != nullptr) {
    run = streamed->run;
    data.passes = streamed->end;
  } else if (streams_beside_passes(context)) {
    SlotEnds ends;
    StreamedPasses passes = streamed_passes(stages, context, kernels, stretch, ends);
    run = std::move(passes.run);
    data.passes = passes.end;
  } else {
    run = pipeline.run;
    const Seconds longer = pipeline.without_messages * (stretch - 1);
    run.length += longer;
    for (ChunkSpan& span : run.spans) {
      span.begin = span.begin * stretch;
      span.end = span.end * stretch;
    }
    data.passes = run.length;
  }
  const StatePlacement placement = placement_of(layout.zero_stage, layout.outer_shards_optimizer);
  const bool whole = placement.parameters == Placement::replicate;
  if (!whole || layout.dp() * layout.cp == 1) return data;
  BucketStreams buckets(stages, context, run.spans, pass_losses(kernels.first, context), stretch);
  // Stages in the middle are alike, and end before the second and after the last one begins.
  const auto last = static_cast<std::size_t>(layout.pp) - 1;
  const std::array<std::size_t, 4> ends = {0, 1, (last + 1) / 2, last};
  double late = 0;
  double reduced = 0;
  double after = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::size_t s = ends[i];
    if (s > last || (i > 0 && s <= ends[i - 1])) continue;
    if (!reduces_by_unit(context)) reduced = std::max(reduced, buckets.reduced(s));
    if (!buckets.gathers_updated()) continue;
    if (layout.overlap_param_gather && context.rules->engine->overlaps_updated_gather) {
      late = std::max(late, buckets.late(s));
    } else {
      after = std::max(after, buckets.gathers(s));
    }
  }
  data.passes = std::max(data.passes, Seconds(reduced)) + Seconds(late);
  data.after = Seconds(after);
  return data;
}

}  // namespace shardwise
