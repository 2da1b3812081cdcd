#pragma once

#include <cstddef>
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
  /// \param spans    of the chunks of all stages
  /// \param losses   of compute to what runs beside it
  /// \param stretch  of compute, as the host issues too slowly
  /// \pre all outlive this
  BucketStreams(const StageTimes& stages, const LeafContext& context,
                const std::vector<ChunkSpan>& spans, const PassLosses& losses, double stretch);

  /// How much later than alone `stage` is, as its first passes wait for parameters: those of later
  /// stages come while the pipeline fills.
  double late(std::size_t stage);
  /// The same where its passes have more to wait for: when parameters are there, which layers of
  /// `passes` wait for.
  void hold(std::size_t stage, PassStreams& passes);
  /// All gathers of `stage`, one after the other.
  double gathers(std::size_t stage);

  /// When the last reduction of `stage` has ended.
  double reduced(std::size_t stage);

 private:
  /// Parameters that are reduced, and gathered, as one.
  struct Bucket {
    double dense = 0;
    double routed = 0;
    double ready = 0;       // seconds of backward before its gradients are there
    double needed = 0;      // seconds of forward before its parameters are
    std::size_t layer = 0;  // of the chunk, that needs them first
  };

  std::size_t chunks() const { return static_cast<std::size_t>(pipeline_.slots->chunks); }

  double reduce(const Bucket& b) { return prices_.reduce(b.dense, b.routed).value(); }
  double reduce_outer(const Bucket& b) { return prices_.reduce_outer(b.dense, b.routed).value(); }
  double gather(const Bucket& b) { return prices_.gather(b.dense, b.routed).value(); }

  /// Reductions of a micro-batch whose backward pass ends at `end`. \param reduced  those so far
  void follow(double& reduced, double end) const;

  /// The buckets of a chunk in the order in which its last pass completes them.
  void fill(std::size_t stage, std::size_t chunk);

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
  double limit_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<double> seconds_;     // of their reductions
  std::vector<std::size_t> order_;  // of chunks
  double length_ = 0;               // of the pass that completes them
};

}  // namespace shardwise
