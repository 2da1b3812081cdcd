#include "planner/cost/step/bucket_streams.h"

#include <algorithm>
#include <numeric>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/step/host_issue.h"

namespace shardwise {
namespace {

/// Whether all tensors of a layer start where a bucket's tensors may, one after the other.
bool aligns(const LayerPace& layer, std::int64_t start) {
  const LayerParameters& p = layer.memory->parameters;
  const auto groups = std::span(p.group).first(static_cast<std::size_t>(p.groups));
  return std::ranges::all_of(
      groups, [&](const TensorGroup& t) { return t.rows * t.row_elements % start == 0; });
}

}  // namespace

BucketStreams::BucketStreams(const StageTimes& stages, const LeafContext& context,
                             const PipelineRun& run, const PassLosses& losses)
    : pipeline_(stages.pipeline),
      engine_(*context.rules->engine),
      layout_(*context.layout),
      prices_(context),
      spans_(run.spans),
      losses_(losses) {
  host_ = host_rules(context, Seconds(0));
  if (host_.issue > 0) issued_ = issued_chunks(pipeline_, host_);
  microbatches_ = static_cast<double>(context.num_microbatches);
  by_unit_ = engine_.bucket_elements == 0 || engine_.gradient_buffer == GradientBuffer::unit_queue;
  table_apart_ = keeps_shared_table_apart(engine_, layout_) &&
                 std::ranges::any_of(pipeline_.layers,
                                     [](const LayerPace& layer) { return layer.copied > 0; });
  const std::int64_t start = bucket_rules(engine_, layout_, false).start;
  layers_join_ = !table_apart_ &&
                 std::ranges::all_of(pipeline_.layers,
                                     [&](const LayerPace& layer) { return aligns(layer, start); });
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
      if (host_.waits) gathered = std::max(gathered, begin);
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

double BucketStreams::spare(const IssuedKernels& pass) const {
  return pass.runs - pass.issue - pass_messages(pipeline_, host_);
}

double BucketStreams::gathers_issued_late(std::size_t stage) {
  double late = 0;
  for (std::size_t c = 0; c < chunks() && !issued_.empty(); ++c) {
    fill(stage, c);
    const double collectives = host_.issue * static_cast<double>(buckets_.size());
    late = std::max(late, collectives - spare(issued_[stage * chunks() + c].forward));
  }
  return late;
}

double BucketStreams::reductions_issued_late(std::size_t stage) {
  if (issued_.empty()) return 0;
  const double each = host_.issue * (layout_.dp_replicate > 1 ? 2 : 1);
  double late = 0;
  double ahead = 0;
  for (std::size_t c = 0; c < chunks(); ++c) {
    const std::size_t place = stage * chunks() + c;
    fill(stage, c);
    const IssuedPass& passes = issued_[place];
    late += each * static_cast<double>(buckets_.size()) - spare(passes.of(spans_[place].last));
    ahead += microbatches_ * spare(passes.forward) + (microbatches_ - 1) * spare(passes.backward);
  }
  return std::max(0.0, late - (host_.waits ? 0 : std::max(0.0, ahead)));
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
  const double held_up = reductions_issued_late(stage);
  last += held_up;
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
      const double share = length_ > 0 ? bucket.ready / length_ : 0;
      const double ready = complete(place, bucket) + held_up * share;
      reduce(bucket, overlaps ? ready : last, so_far);
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
  const bool single = has_single_buckets(engine_, layout_, stage == 0 && chunk == 0);
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
  const BucketRules rules = bucket_rules(engine_, layout_, !single);
  const bool joins = single && layers_join_;
  const auto memory_of = [&](const PacedRun& run) -> const LayerMemory& {
    return *pipeline_.layers[static_cast<std::size_t>(run.kind)].memory;
  };
  const LayerMemory* late = by_unit_ || joins ? nullptr : late_head(engine_, runs, memory_of);
  const std::int64_t copied = pipeline_.layers[static_cast<std::size_t>(runs.back().kind)].copied;
  const ChunkEnds ends = {late, copied, table_apart_};
  Sink sink{*this};
  BucketFiller<Sink> whole(rules, sink);
  ChunkFiller<Sink> filler(rules, ends, sink);
  buckets_.clear();
  bool begun = by_unit_ || joins;
  if (late != nullptr) {  // its matrix enters before the layers behind it, and is complete with it
    walk(place, last, [&](const LayerPace& layer) {
      if (layer.memory != late) return true;
      filler.begin();
      begun = true;
      return false;
    });
  }
  Bucket behind;
  walk(place, last, [&](const LayerPace& layer) {
    if (!begun) filler.begin();
    begun = true;
    if (behind.layer == 0) behind = next_;
    if (by_unit_) {
      add_unit(layer);
    } else if (joins) {
      whole.add(false, layer.dense);
      whole.add(true, layer.routed);
    } else {
      filler.add(*layer.memory);
    }
    return true;
  });
  if (late != nullptr) next_ = behind;  // multi-token prediction, which reads a copied table
  whole.close(false);
  whole.close(true);
  if (!by_unit_ && !joins) filler.end();
}

template <class Visit>
void BucketStreams::walk(std::size_t place, LayerPart part, Visit visit) {
  const auto runs = pipeline_.runs_of(place);
  length_ = 0;
  next_ = {};
  next_.needed = pipeline_.chunk_time[place].forward.value();
  for (const PacedRun& run : runs) next_.layer += static_cast<std::size_t>(run.layers);
  for (std::size_t r = runs.size(); r-- > 0;) {
    const LayerPace& layer = pipeline_.layers[static_cast<std::size_t>(runs[r].kind)];
    for (std::int32_t i = 0; i < runs[r].layers; ++i) {
      pass(layer, part);
      if (!visit(layer)) return;
    }
  }
}

void BucketStreams::pass(const LayerPace& layer, LayerPart part) {
  --next_.layer;
  length_ += layer.time.of(part).value();
  // A layer that puts nothing off was complete before a pass of weight gradients.
  if (part != LayerPart::backward_weight || layer.time.weight_gradient > Seconds(0)) {
    next_.ready = length_;
    next_.maker = next_.layer;
  } else if (by_unit_) {
    next_.ready = 0;
    next_.maker = next_.layer;
  }
  next_.needed -= layer.time.forward.value();
}

void BucketStreams::add_unit(const LayerPace& layer) {
  std::array<std::int64_t, 2> elements = {layer.dense, layer.routed};
  if (prices_.placement().optimizer != Placement::replicate) {
    const UnitElements unit = unit_elements(*layer.memory, layer.copied, engine_, layout_,
                                            prices_.rules().shard_multiple);
    elements = {unit.padded_dense, unit.padded_routed};
  }
  const OwnRoots roots = own_roots(*layer.memory, layer.place, engine_, layout_);
  for (std::size_t r = roots.buckets.size(); r-- > 0;) {
    filled_[0] = next_;
    close(false, roots.buckets[r].padded);
  }
  for (const bool routed : {false, true}) {
    filled_[routed ? 1 : 0] = next_;
    close(routed, elements[routed ? 1 : 0]);
  }
}

void BucketStreams::close(bool routed, std::int64_t elements) {
  if (elements <= 0) return;
  Bucket& bucket = buckets_.emplace_back(filled_[routed ? 1 : 0]);
  (routed ? bucket.routed : bucket.dense) = static_cast<double>(elements);
}

}  // namespace shardwise
