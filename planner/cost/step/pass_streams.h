#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/step/host_copies.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pass_units.h"
#include "planner/cost/step/stage_times.h"
#include "planner/schedule/pipeline.h"
#include "planner/schedule/steady_state.h"

namespace shardwise {

/// Seconds of a bucket of gradients on its way over the inner axis and the outer one, and of
/// compute where it sums in fp32 what arrives: before the next one leaves, and after the last pass.
struct ReducedBucket {
  double reduce = 0;
  double outer = 0;
  double sum = 0;
};

/// The passes of a step layer by layer, with what runs beside them on streams of their own:
/// gathers of parameters, reductions of gradients, copies of activations to the host and back. By
/// the rules of the engine (docs/gathers_and_reductions.md) for layouts whose
/// parameters are sharded, or whose gradients leave for their shards layer by layer; without
/// collectives for the others. Nothing is shared but the order on a communicator.
class PassStreams {
 public:
  /// \param losses  of compute to collectives beside it
  /// \pre all outlive this
  PassStreams(const StageTimes& stages, const LeafContext& context, const PassLosses& losses);

  /// The first pass of a layer waits for a bucket of updated parameters, whose gather takes
  /// `seconds`. Waiting for a gather issues the next one.
  /// \param place  stage x chunks + chunk \param layer  of the chunk, in forward order
  /// \pre buckets in the order in which they are needed
  void hold(std::size_t place, std::size_t layer, double seconds);

  /// The gradients of a layer complete a bucket. \pre as hold(); buckets in the order in which they
  /// leave; no pass has run
  void complete(std::size_t place, std::size_t layer, const ReducedBucket& bucket);

  /// Runs one pass and returns its end. Called by sweep_pipeline.
  double pass(const PipelineSlots::Slot& slot, PassTurn& handed, ChunkSpan& span);
  StageHosts& hosts() { return hosts_; }

  void visit(StateVisit& state);

  /// All passes have run: what is left to reduce and to sum follows.
  void finish();

  /// When the last operation of any stream has ended. \pre finish()
  Seconds end() const;
  /// Ends of each stage.
  std::vector<double> ends() const;

 private:
  using Unit = PassUnit;
  /// A layer of a stage.
  struct Held {
    bool begun = false;  // it ran forward
    bool whole = false;
    bool used = false;
    bool copied = false;
    bool outer = false;        // gathered over the outer axis in this step
    bool accumulated = false;  // a micro-batch's gradients are there
    bool part = false;         // of its weights is kept after forward
    bool turns = false;        // it takes turns with a buffer
    std::size_t number = 0;    // of those that take turns
    std::size_t queued = 0;    // its last reduction is the n-th of the stage's
    double ready = 0;
    std::size_t buckets = 0;       // of updated parameters, which its first pass waits for
    std::size_t first_bucket = 0;  // of the stage's
    std::vector<ReducedBucket> completes;

    /// All of the first lines as one number.
    double flags() const {
      int all = 0;
      for (const bool flag : {begun, whole, used, copied, outer, accumulated, part, turns}) {
        all = 2 * all + (flag ? 1 : 0);
      }
      return all;
    }
  };
  /// A reduction that backward has not waited for.
  struct Pending {
    double end = 0;
    double elements = 0;
  };
  struct Stage {
    double compute = 0;
    double gather = 0;
    double reduce = 0;
    double outer = 0;
    double cast = 0;
    double host = 0;
    HostPlaces places;                 // of offloaded activations
    std::array<double, 2> gathered{};  // by group: the last gather, the last reduction
    std::array<double, 2> reduced{};
    double last_reduced = 0;
    double ahead = 0;            // elements gathered and not yet used …
    double capacity = 0;         // … at which a queue gathers no more
    double reduce_capacity = 0;  // and those that one keeps beside the last it reduces
    double gate = 0;             // gathers issued now wait for this copy
    double last_copy = 0;
    std::array<double, 4> users{};   // when each buffer that layers cycle through is free
    std::size_t used = 0;            // buffers used so far, the last of which are in `users`
    std::vector<Pending> pending;    // reductions in order, from the first that is waited for
    std::size_t waited = 0;          // reductions before those
    std::array<double, 2> staged{};  // buffers of gradients that blocks take turns with: free
    double staged_root = 0;          // and that of embedding and head
    std::size_t turns = 0;
    double pending_elements = 0;
    double due = 0;               // seconds of the sum of the bucket that left last
    std::vector<double> updated;  // seconds of the gather of each bucket
    std::vector<double> there;    // when it ends, of those that were issued

    double& user(std::size_t number) { return users[number % users.size()]; }
  };
  /// A layer of the pass that runs.
  struct Turn {
    Stage* stage = nullptr;
    HostClock* issuer = nullptr;
    const PipelineSlots::Slot* slot = nullptr;
    bool forward = false;
    std::span<const std::int32_t> kinds;  // in forward order
    std::size_t base = 0;                 // of the chunk's layers in `held_`
    std::size_t at = 0;                   // in the order of the pass
    std::size_t index = 0;                // the same in forward order
  };

  static std::size_t index(const Turn& turn, std::size_t at) {
    return turn.forward ? at : turn.kinds.size() - 1 - at;
  }
  const Unit& unit(const Turn& turn, std::size_t at) const {
    return units_[static_cast<std::size_t>(turn.kinds[index(turn, at)])];
  }
  Held& held(const Turn& turn, std::size_t at) { return held_[turn.base + index(turn, at)]; }
  const Unit& unit(const Turn& turn) const {
    return units_[static_cast<std::size_t>(turn.kinds[turn.index])];
  }
  Held& held(const Turn& turn) { return held_[turn.base + turn.index]; }

  void set_capacities(const PipelineTimes& pipeline, const LeafContext& context);
  /// The gather of the next bucket of updated parameters.
  static void issue_updated(Stage& stage, HostClock& issuer);
  /// \returns when those that a layer waits for are there
  static double updated(Stage& stage, HostClock& issuer, const Held& layer);
  void issue(const Turn& turn, std::size_t at);
  double weights(const Turn& turn);
  double room(const Turn& turn);
  double longer(const Turn& turn, LayerPart part);
  double layer(const Turn& turn, double ready, ChunkSpan& span);
  void reduce(const Turn& turn, double made);
  void reduce_ready(const Turn& turn, double made);
  /// Compute sums the bucket that left last, as soon as it is there.
  static void sum_up(Stage& stage, HostClock& issuer);
  /// Buckets that a layer completes, in the last micro-batch over the outer axis as well.
  static void dispatch(Stage& stage, HostClock& issuer, const Held& layer, bool last);

  StreamRules rules_;
  bool moves_ = false;    // parameters or gradients, layer by layer
  bool buckets_ = false;  // gradients, as layers complete them
  PassLosses losses_;
  std::size_t per_stage_ = 1;
  StageHosts hosts_;
  std::vector<Unit> units_;  // by kind
  std::vector<Stage> stages_;
  std::vector<Held> held_;
  /// Time collectives of its neighbours add to a layer, as Held, by what it runs: two of forward,
  /// four of backward passes. NaN: not asked for so far.
  std::vector<std::array<double, 6>> longer_;
  std::vector<std::vector<std::int32_t>> kinds_;  // by stage x chunks + chunk, in forward order
  std::vector<std::size_t> base_;
};

}  // namespace shardwise
