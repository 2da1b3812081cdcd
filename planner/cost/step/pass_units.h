#pragma once

#include <array>
#include <cstdint>

#include "planner/cost/step/host_issue.h"
#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/pipeline_times.h"
#include "planner/schedule/pipeline.h"

namespace shardwise {

/// One layer's operations in seconds; of two, the second is of its routed parameters.
struct PassUnit {
  ChunkTime compute;
  IssuedPass issued;  // the same, and its kernels
  std::array<double, 2> gather{};
  double gather_again = 0;  // of the part that forward kept
  double reshard = 0;       // to that part
  std::array<double, 2> reduce{};
  double cast = 0;
  double copy_out = 0;
  double copy_in = 0;
  double accumulate = 0;
  double gather_outer = 0;
  double reduce_outer = 0;
  double outers = 0;  // operations of each of the last two
  double host = 0;
  double elements = 0;  // gathered, and of these reduced
  double trained = 0;
  bool gathers = false;
  bool reduces = false;
  bool root = false;
  bool begins_root = false;  // gradients of a bucket that the first layer of its chunk completes
  bool head = false;
  bool tied_to_head = false;  // LayerPace::tied_to_head
  // Gathered, it stays whole to the end of the step, and to backward, by the rules (StreamRules).
  bool kept_over_step = false;
  bool kept_to_backward = false;

  bool released(bool forward) const { return forward ? !kept_to_backward : !kept_over_step; }
};

/// Order of waiting where parameters or gradients move layer by layer: the rules of an engine
/// for a layout (docs/gathers_and_reductions.md).
struct StreamRules {
  enum class Gather : std::uint8_t { copied, limited, queued, double_buffered };
  Gather gather = Gather::copied;
  bool sharded = false;         // parameters
  bool every = false;           // gradients are reduced each micro-batch
  bool accumulates = false;     // and join those of the micro-batches before
  bool shared = false;          // gathers and reductions have one communicator
  bool copies = false;          // gradients are tensors of their own
  bool waits_to_copy = false;   // for the reduction before
  bool reshards = true;         // after forward
  bool to_groups = false;       // of fewer ranks, …
  bool keeps_parts = false;     // … which gather in the later forward passes of a step too
  bool once = false;            // each unit is gathered once a step
  bool keeps_roots = false;     // whole
  bool joins_roots = false;     // and their gradients wait for one another
  bool offloads = false;        // activations
  bool planned = false;         // buffers are those of an arena
  bool buckets_beside = false;  // leave beside passes, not all after the last one

  bool kept_over_step(const PassUnit& unit) const;
  bool kept_to_backward(const PassUnit& unit) const;
};
StreamRules stream_rules(const LeafContext& context);

/// A layer of a kind of which full recompute takes every n-th, where `layer` is their mean: one
/// that it takes, and one that it leaves alone.
LayerPace taken(LayerPace layer);
LayerPace left_alone(LayerPace layer);

PassUnit pass_unit(const StreamRules& rules, const LeafContext& context, const LayerPace& layer,
                   const HostRules& host);

/// Whether gradients of a layout leave layer by layer, for their shards or as FSDP1 joins them.
bool reduces_by_unit(const LeafContext& context);

/// Whether buckets of gradients are summed in fp32 by the stream that computes, as under Megatron:
/// before the next one leaves, and after the last pass. Then nothing is reduced over an outer axis.
bool sums_in_compute(const LeafContext& context);

/// Whether passes of a layout meet anything but one another and messages: parameters or gradients
/// on their way layer by layer or each micro-batch, activations to the host, sums in compute.
bool streams_beside_passes(const LeafContext& context);

}  // namespace shardwise
