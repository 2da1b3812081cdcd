#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/cost/leaf_context.h"
#include "planner/cost/overlap_loss.h"
#include "planner/cost/pass_streams.h"
#include "planner/cost/pipeline.h"
#include "planner/cost/stage_times.h"
#include "planner/cost/unit_prices.h"

namespace shardwise {

/// Buckets of whole parameters on their way: reduced as passes complete them, gathered before the
/// first passes that need them. docs/time.md, "Data parallel".
class BucketStreams {
 public:
  /// \param run     of all stages
  /// \param losses  of compute to what runs beside it
  /// \pre all outlive this
  BucketStreams(const StageTimes& stages, const LeafContext& context, const PipelineRun& run,
                const PassLosses& losses);

  /// How much later than alone `stage` is, as its first passes wait for parameters: those of later
  /// stages come while the pipeline fills. \param begins  so much later than in `run`
  double late(std::size_t stage, double begins = 0);
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
  /// Of a stage: those so far.
  struct Reductions {
    double inner = 0;  // the last one over the inner axis has ended
    double outer = 0;
    double moved = 0;  // seconds in all
    double moved_outer = 0;
  };

  std::size_t chunks() const { return static_cast<std::size_t>(pipeline_.slots->chunks); }

  double reduce_outer(const Bucket& b) { return prices_.reduce_outer(b.dense, b.routed).value(); }
  double gather(const Bucket& b) { return prices_.gather(b.dense, b.routed).value(); }

  /// When the last pass of a chunk completes a bucket.
  double complete(std::size_t place, const Bucket& bucket) const;
  /// A bucket that is complete at `ready`.
  static void reduce(const Bucket& bucket, double ready, Reductions& so_far);

  /// The buckets of a chunk in the order in which its last pass completes them.
  void fill(std::size_t stage, std::size_t chunk);
  /// \param single  all of it is one bucket
  void fill(std::size_t place, bool single);
  /// A layer is a bucket of its own, or joins the only one.
  void add(const LayerPace& layer);
  /// Tensors enter the open bucket of their group, which is full with the one that crosses the
  /// limit, or before it.
  void add(const TensorGroup& tensors);
  /// So many elements of the open bucket of dense (0) or routed parameters (1) are one.
  void close(std::size_t group, double elements);

  const PipelineTimes& pipeline_;
  const EngineProfile& engine_;
  const Layout& layout_;
  UnitPrices prices_;
  const std::vector<ChunkSpan>& spans_;
  PassLosses losses_;
  bool waits_ = false;  // the host, for messages
  bool by_unit_ = false;
  double limit_ = 0;
  std::vector<Filled> filled_before_;
  std::vector<Bucket> buckets_;
  Bucket next_;                     // of the layer that enters, without elements
  std::array<Bucket, 2> filled_;    // the same of the layer that entered an open bucket last
  std::array<double, 2> open_{};    // elements, of dense and of routed parameters
  std::vector<std::size_t> order_;  // of chunks
  double length_ = 0;               // of the pass that completes them
};

}  // namespace shardwise
