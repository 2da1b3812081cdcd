#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/cost/step/host_issue.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pass_streams.h"
#include "planner/cost/step/stage_times.h"
#include "planner/cost/step/unit_prices.h"
#include "planner/schedule/pipeline.h"

namespace shardwise {

/// Buckets of whole parameters on their way: reduced as passes complete them, gathered before the
/// first passes that need them. docs/data_parallel_time.md.
class BucketStreams {
 public:
  /// \param run     of all stages
  /// \param losses  of compute to what runs beside it
  /// \pre all outlive this
  BucketStreams(const StageTimes& stages, const LeafContext& context, const PipelineRun& run,
                const PassLosses& losses);

  /// Delay of `stage` against running alone, as its first passes wait for parameters: those of
  /// later stages come while the pipeline fills. \param begins  so much later than in `run`
  double late(std::size_t stage, double begins = 0);
  /// Delay of the host of `stage` at the end of a first pass, for the gathers that it issues
  /// beside it.
  double gathers_issued_late(std::size_t stage);
  /// Its passes have more to wait for: layers of `passes` wait until their parameters are there.
  void hold(std::size_t stage, PassStreams& passes);
  /// Gradients of `stage` are reduced as layers of `passes` complete their buckets.
  void complete(std::size_t stage, PassStreams& passes);
  /// All gathers of `stage`, one after the other.
  double gathers(std::size_t stage);

  /// When the last reduction of `stage` has ended. \pre not streams_beside_passes()
  double reduced(std::size_t stage);

 private:
  /// Parameters that are reduced, and gathered, as one.
  struct Bucket {
    double dense = 0;
    double routed = 0;
    double ready = 0;       // seconds of backward before its gradients are there
    double needed = 0;      // seconds of forward before its parameters are
    std::size_t layer = 0;  // of the chunk, that needs them first
    std::size_t maker = 0;  // and that which completes its gradients
    double reduces = 0;     // seconds over the inner axis
  };
  /// Those of a chunk, as chunks with the same layers have them.
  struct Filled {
    std::size_t place = 0;
    bool single = false;
    double length = 0;
    std::vector<Bucket> buckets;
  };
  /// Reductions of a stage so far.
  struct Reductions {
    double inner = 0;  // the last one over the inner axis has ended
    double outer = 0;
    double moved = 0;  // seconds in all
    double moved_outer = 0;
  };

  std::size_t chunks() const { return static_cast<std::size_t>(pipeline_.slots->chunks); }

  double reduce_outer(const Bucket& b) { return prices_.reduce_outer(b.dense, b.routed).value(); }
  double gather(const Bucket& b) { return prices_.gather(b.dense, b.routed).value(); }

  /// Seconds that a host has to spare while a pass runs.
  double spare(const IssuedKernels& pass) const;
  /// Delay of the end of a stage's last passes for their reductions, which its host issues
  /// beside them: less what it has come ahead by until then, if it does not wait for messages.
  double reductions_issued_late(std::size_t stage);

  /// When the last pass of a chunk completes a bucket.
  double complete(std::size_t place, const Bucket& bucket) const;
  /// A bucket that is complete at `ready`.
  static void reduce(const Bucket& bucket, double ready, Reductions& so_far);

  /// The buckets of a chunk in the order in which its last pass completes them.
  void fill(std::size_t stage, std::size_t chunk);
  /// \param single  all of it is one bucket
  void fill(std::size_t place, bool single);
  /// Visits the layers of a chunk, the last first, with `next_` of each, until it returns false.
  template <class Visit>
  void walk(std::size_t place, LayerPart part, Visit visit);
  /// The layer in front of `next_` enters next, in that part of the last pass.
  void pass(const LayerPace& layer, LayerPart part);
  /// A layer is a bucket of its own.
  void add_unit(const LayerPace& layer);
  /// Receiver of what a BucketFiller tells.
  struct Sink {
    BucketStreams& streams;
    void enter(bool routed, bool opens, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
      Bucket& open = streams.filled_[routed ? 1 : 0];
      if (opens || streams.next_.layer < open.layer) open = streams.next_;
    }
    void close(bool routed, std::int64_t, std::int64_t, std::int64_t padded) {
      streams.close(routed, padded);
    }
  };
  /// The bucket of the layer that entered last is full.
  void close(bool routed, std::int64_t elements);

  const PipelineTimes& pipeline_;
  const EngineProfile& engine_;
  const Layout& layout_;
  UnitPrices prices_;
  const std::vector<ChunkSpan>& spans_;
  PassLosses losses_;
  HostRules host_;
  std::vector<IssuedPass> issued_;  // issued_chunks(), where the host takes time
  double microbatches_ = 1;
  bool by_unit_ = false;
  bool table_apart_ = false;  // that two stages share
  bool layers_join_ = false;  // a single bucket is filled layer by layer as tensor by tensor
  std::vector<Filled> filled_before_;
  std::vector<Bucket> buckets_;
  Bucket next_;                     // of the layer that enters, without elements
  std::array<Bucket, 2> filled_;    // the same of the first layer of an open bucket
  std::vector<std::size_t> order_;  // of chunks
  double length_ = 0;               // of the pass that completes them
};

}  // namespace shardwise
