#pragma once

#include <cstdint>

#include "planner/spec/layout.h"
#include "planner/spec/units.h"

namespace shardwise {

/// Stream time of one micro-batch in a pipeline.
struct PipelinePace {
  Seconds forward;          // of the slowest stage
  Seconds backward;         // of the slowest stage, recompute and weight gradients included
  Seconds weight_gradient;  // part of `backward` that zero-bubble schedules move
  Seconds all;              // forward and backward, summed over the stages
};

/// Idle time by schedule: what a pipeline takes beyond num_microbatches x (forward + backward) of
/// its slowest stage. Zero for pp == 1.
///
/// With p stages, v chunks a stage, f and b of equal stages, w the weight gradients' part of b:
///   1F1B, GPipe    (p-1)(f+b)                     Huang et al., arXiv:1811.06965
///   interleaved    (p-1)(f+b)/v                   Narayanan et al., arXiv:2104.04473, section 2.2
///                  + (v-1)(p - m mod p)(f+b)/v when p does not divide m
///   looped BFS     (p-1)(f+b)/v                   Lamy-Poirier, arXiv:2211.05953
///                  + (v-1)(p - m)(f+b)/v when m < p
///   ZB-H1          (p-1)(f+b-2w)                  Qi et al., arXiv:2401.10241, section 2.3
///   ZB-H2, ZB-V    (p-1)(f+b-3w)                  same, sections 2.3 and 6; and at least the
///                                                 (p-1) f, or half chunks' f or b-w, before the
///                                                 last stage begins or after it ends: a step
///                                                 ends for all stages at once
///   DualPipe       (p/2-1)(f+2b-3w)               DeepSeek-V3, arXiv:2412.19437, table 2; f+b is
///                                                 then the time of the overlapped pair
///   DualPipeV      (p-1)(f+2b-3w)/2               deepseek-ai/DualPipe:README.md: as DualPipe of
///                                                 2 p stages, each half of a rank's
/// Unequal stages fill and drain at their own pace: (p-1)(f+b) becomes all - (f+b).
Seconds pipeline_bubble(PipelineSchedule schedule, std::int32_t pp, std::int32_t vpp,
                        std::int64_t num_microbatches, const PipelinePace& pace);

/// Messages of one activation (or its gradient) that a step waits for.
struct PipelineMessages {
  double alone = 0;         // nothing of the stage runs meanwhile
  double beside_chunk = 0;  // a chunk of another micro-batch does
};

/// Without chunks 1F1B and GPipe wait for a message after each pass: with every other stage that
/// the slowest one has beside it, `neighbours`, once a micro-batch, and 2 (p-1) to fill and drain,
/// less those after the last passes. With v chunks 2 (v p - 1) are waited for until the pipeline is
/// full and again empty, the others run beside a chunk; looped BFS waits for 2 (p-1) where there
/// are more micro-batches than stages. Schedules that split the backward pass wait while they fill
/// and drain alone: ZB-H1 4 (p-1), ZB-H2 p-1, ZB-V 5 (p-1) - 2, DualPipe 5 p/2 - 3, DualPipeV 5 p
/// - 3. What the lowered schedules wait for is counted so: tests/simulator/schedule_times_test.cc.
PipelineMessages pipeline_messages(const Layout& layout, std::int64_t num_microbatches,
                                   double neighbours);

}  // namespace shardwise
