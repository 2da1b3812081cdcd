#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// One pass of a stage: a chunk of the model for a micro-batch. `part` is forward, backward, or one
/// of its halves where a schedule splits it.
struct PipelinePass {
  LayerPart part = LayerPart::forward;
  std::int16_t chunk = 0;
  std::int32_t microbatch = 0;
  /// A forward pass that runs as one with the backward pass after it: neither begins before both
  /// have what they wait for, and what they hand on leaves when both have ended.
  bool with_next = false;
  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

/// The order in which `stage` runs the passes of a step under layout.schedule. Every chunk of every
/// micro-batch once, forward before backward, input gradient before weight gradient.
/// docs/schedules.md. \pre check_layout has no diagnostics
std::vector<PipelinePass> pass_order(const Layout& layout, std::int32_t stage,
                                     std::int64_t num_microbatches);

/// A pipeline as a schedule sees it.
struct PipelinePlace {
  std::int32_t pp = 1;
  std::int32_t vpp = 1;
  std::int32_t stage = 0;
  std::int32_t microbatches = 1;
};

/// All forward passes, then all backward passes. Source: Huang et al., "GPipe" (arXiv:1811.06965),
/// figure 2 (c).
std::vector<PipelinePass> gpipe_order(const PipelinePlace& place);

/// pp - 1 - stage forward passes to warm up, then one forward and one backward in turn.
/// Source: Narayanan et al., "PipeDream" (arXiv:1806.03377), section 3.2; with a flush:
/// arXiv:2104.04473, figure 4, top.
std::vector<PipelinePass> one_f_one_b_order(const PipelinePlace& place);

/// 1F1B over vpp chunks a stage: pp micro-batches of one chunk, then of the next.
/// Source: Narayanan et al. (arXiv:2104.04473), section 2.2 and figure 4, bottom; warm-up of
/// Megatron-LM@d98e8a64:megatron/core/pipeline_parallel/schedules.py,
/// get_pp_rank_microbatches. \pre pp divides the micro-batches
std::vector<PipelinePass> interleaved_order(const PipelinePlace& place);

/// All micro-batches forward through chunk 0, then through chunk 1 …; backward in the opposite
/// order of chunks. Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism" (arXiv:2211.05953);
/// pytorch/pytorch:torch/distributed/pipelining/schedules.py, ScheduleLoopedBFS.
std::vector<PipelinePass> looped_bfs_order(const PipelinePlace& place);

/// ZB-H1: 1F1B whose weight gradients come `stage` micro-batches after the input gradients. ZB-H2
/// warms up with 2 (pp - 1 - stage) forward passes and delays by 2 stage.
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (arXiv:2401.10241), figures 2 and 3.
std::vector<PipelinePass> zb_h1_order(const PipelinePlace& place);
std::vector<PipelinePass> zb_h2_order(const PipelinePlace& place);

/// Two chunks a stage, placed as a V. Source: Qi et al., "Pipeline Parallelism with Controllable
/// Memory" (arXiv:2405.15362), section 3; the order of
/// pytorch/pytorch:torch/distributed/pipelining/schedules.py, ScheduleZBVZeroBubble.
/// \pre at least 2 pp micro-batches
std::vector<PipelinePass> zb_v_order(const PipelinePlace& place);

/// DualPipe folded at its middle, so that a stage holds chunk `stage` of one direction and chunk
/// 2 pp - 1 - stage of the other, and parameters exist once ("DualPipeV", "cut in half").
/// Source: DeepSeek-V3 (arXiv:2412.19437), section 3.2.1 and figure 5;
/// deepseek-ai/DualPipe:dualpipe/dualpipev.py. \pre at least 2 pp micro-batches
std::vector<PipelinePass> dualpipe_v_order(const PipelinePlace& place);

/// DualPipe: the first half of the micro-batches enters at stage 0, the other at the last, so that
/// a stage holds its own part of the model (chunk 0) and its mirror image's (chunk 1).
/// Source: as above, figure 5; deepseek-ai/DualPipe:dualpipe/dualpipe.py, DualPipe.step.
/// \pre pp and the micro-batches are even, at least 2 pp micro-batches
std::vector<PipelinePass> dualpipe_order(const PipelinePlace& place);

}  // namespace shardwise
