#include "planner/search/pricing/streams_floor.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "planner/cost/step/pass_units.h"
#include "planner/cost/step/slowed_layer.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Seconds of one layer in one pass.
struct LayerFloor {
  double alone = 0;   // computes, beside nothing
  double slowed = 0;  // the same between layers of its own kind, in whatever pass
  double copies = 0;  // and on the same stream copies of what it gathers and reduces
  double gather = 0;  // on another one
};

/// One layer of a kind.
struct KindFloor {
  LayerFloor forward;
  LayerFloor backward;
  double reduces = 0;  // in the whole step
  double reduces_outer = 0;
};

/// A pass whose layers gather one after the other, from its begin on, and compute one after the
/// other, each once it has gathered.
class PassFloor {
 public:
  /// Layers alike that follow those so far.
  void add(const LayerFloor& each, double layers) {
    add(1, each.alone + each.copies, each.gather);  // a neighbour may be of another kind
    add(layers - 2, each.slowed + each.copies, each.gather);
    add(std::min(layers - 1, 1.0), each.alone + each.copies, each.gather);
  }
  double computes() const { return computes_; }
  double gathers() const { return gathers_; }
  double both() const { return both_; }

 private:
  void add(double layers, double computes, double gather) {
    if (layers <= 0) return;
    both_ = std::max(both_ + layers * computes,
                     gathers_ + gather + (layers - 1) * std::max(gather, computes) + computes);
    gathers_ += layers * gather;
    computes_ += layers * computes;
  }

  double computes_ = 0;
  double gathers_ = 0;
  double both_ = 0;
};

class StepFloor {
 public:
  StepFloor(std::span<const LayerPace> layers, const LeafContext& context, const PassLosses& losses)
      : rules_(stream_rules(context)),
        splits_(facts_of(*context.layout).splits_backward),
        one_stage_(context.layout->pp == 1),
        microbatches_(static_cast<double>(context.num_microbatches)) {
    kinds_.reserve(layers.size());
    for (const LayerPace& layer : layers) kinds_.push_back(kind_of(layer, context, losses));
  }

  Seconds of(std::span<const StageLayers> stages);

 private:
  /// What streams of a stage do in a step.
  struct StageFloor {
    double computes = 0;
    double gathers = 0;
    double reduces = 0;
    double last = 0;          // pass, backward through its first chunk
    double reduces_last = 0;  // no sooner than that
  };
  KindFloor kind_of(const LayerPace& layer, const LeafContext& context,
                    const PassLosses& losses) const;
  /// Seconds of a layer between two like it: in a pass among others, or in one that is the first
  /// of the step forward, or the last one backward.
  double slowed(LayerPart part, const PassUnit& unit, const PassLosses& losses) const;
  /// The runs of one chunk.
  void add(std::span<const StageRun> runs, StageFloor& stage);
  /// The last layer of a stage that holds a copy of the token table is taken for one without.
  const KindFloor& kind(const StageRun& run) const {
    return kinds_[static_cast<std::size_t>(run.kind)];
  }

  StreamRules rules_;
  bool splits_;
  bool one_stage_;
  double microbatches_;
  std::vector<KindFloor> kinds_;
  // What stages before the next one compute of their first chunk for the first micro-batch, and
  // after it for the last one.
  double before_ = 0;
  double after_ = 0;
};

double StepFloor::slowed(LayerPart part, const PassUnit& unit, const PassLosses& losses) const {
  const auto at_end = [&](bool end) {
    const bool forward = part == LayerPart::forward;
    return slowed_layer(rules_, losses, unit,
                        {part, forward && end, !forward && end, &unit, &unit});
  };
  return std::min(at_end(false), at_end(true));
}

KindFloor StepFloor::kind_of(const LayerPace& layer, const LeafContext& context,
                             const PassLosses& losses) const {
  const PassUnit unit = pass_unit(rules_, context, layer, {});
  KindFloor kind;
  kind.forward.alone = layer.time.forward.value();
  kind.forward.slowed = slowed(LayerPart::forward, unit, losses);
  // Of layers of which recompute takes every n-th, one that it leaves alone.
  const bool alike = layer.memory->recompute_interval == 1;
  kind.backward.alone =
      (alike ? layer.time.backward : layer.time.backward - layer.recompute).value();
  kind.backward.slowed =
      alike && !splits_ ? slowed(LayerPart::backward, unit, losses) : kind.backward.alone;
  if (unit.gathers && !unit.kept_over_step) {
    // Of what stays whole to backward several micro-batches in flight gather once, or more often.
    const bool each = !unit.kept_to_backward;
    const double whole = unit.gather[0] + unit.gather[1];
    const double gather = rules_.to_groups ? std::min(whole, unit.gather_again) : whole;
    const double copy = rules_.gather == StreamRules::Gather::copied ? unit.copy_out : 0;
    if (each || one_stage_) kind.forward.gather = gather;
    if (each || one_stage_) kind.forward.copies += copy;
    if (each) kind.backward.gather = gather;
    if (each) kind.backward.copies += copy;
  }
  if (rules_.sharded && rules_.every) kind.backward.copies += unit.copy_in;
  const double reductions = rules_.every ? microbatches_ : 1;
  if (unit.reduces) {
    kind.reduces = reductions * (unit.reduce[0] + unit.reduce[1]);
    const double sums = rules_.copies ? reductions - 1 : reductions;
    if (rules_.accumulates) kind.reduces += sums * unit.accumulate;
  }
  kind.reduces_outer = unit.reduce_outer;
  return kind;
}

void StepFloor::add(std::span<const StageRun> runs, StageFloor& stage) {
  PassFloor forward;
  PassFloor backward;
  double reduces = 0;
  double reduces_outer = 0;
  for (const StageRun& run : runs) forward.add(kind(run).forward, run.layers);
  for (std::size_t r = runs.size(); r-- > 0;) {
    const KindFloor& of = kind(runs[r]);
    backward.add(of.backward, runs[r].layers);
    reduces += runs[r].layers * of.reduces;
    reduces_outer += runs[r].layers * of.reduces_outer;
  }
  // Gathers of a pass wait for the pass before it only where they are queued with compute. The
  // first pass of a chunk waits for other stages.
  const bool queued = rules_.gather == StreamRules::Gather::queued;
  const auto takes = [&](const PassFloor& pass) {
    return queued ? std::max(pass.both(), pass.computes()) : pass.computes();
  };
  stage.computes +=
      forward.computes() + (microbatches_ - 1) * takes(forward) + microbatches_ * takes(backward);
  stage.gathers += microbatches_ * (forward.gathers() + backward.gathers());
  stage.reduces += reduces;
  if (runs.front().chunk == 0) {
    stage.last = takes(backward);
    stage.reduces_last = std::max(reduces_outer, rules_.every ? 0 : reduces);
    before_ += forward.computes();
    after_ += splits_ ? 0 : backward.computes();
  }
}

Seconds StepFloor::of(std::span<const StageLayers> stages) {
  double floor = 0;
  for (const StageLayers& stage : stages) {
    const double before = before_;
    const double after = after_;
    StageFloor all;
    for (std::size_t first = 0; first < stage.runs.size();) {
      std::size_t end = first;
      while (end < stage.runs.size() && stage.runs[end].chunk == stage.runs[first].chunk) ++end;
      add(std::span(stage.runs).subspan(first, end - first), all);
      first = end;
    }
    floor = std::max({floor, before + all.computes + after, all.gathers + after,
                      before + all.computes - all.last + all.reduces_last,
                      before + (rules_.every ? all.reduces : 0)});
  }
  return Seconds(floor);
}

}  // namespace

Seconds streams_floor(std::span<const LayerPace> layers, std::span<const StageLayers> stages,
                      const LeafContext& context, const PassLosses& losses) {
  if (facts_of(*context.layout).pairs_passes) return Seconds(0);
  return StepFloor(layers, context, losses).of(stages);
}

}  // namespace shardwise
