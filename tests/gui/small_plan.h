#pragma once

#include "planner/estimate/estimate.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {
struct Compared;
struct CompareView;
}  // namespace shardwise::view

namespace shardwise::test {

/// A Llama of 1 B parameters on 8 GPUs of a node, megatron_ddp: a space that is searched in
/// milliseconds. `gpus` of 1, 2, 4 or 8.
Plan small_plan(std::int64_t gpus = 8);

/// Plan in two pipeline stages: there are messages and a bubble.
Plan two_stage_plan();
/// Plan in four stages of two tensor parallel ranks, ZeRO-0.
Plan four_stage_plan();

/// Plan on two nodes, two ranks along each of tp, dp_shard, dp_replicate and pp.
Plan two_node_plan();

/// Llama-3.1-8B on one GPU: no layout fits.
Plan plan_that_cannot_fit();

/// The estimate of the plan's step.
StepReport report_of(const Plan& plan, Detail detail = Detail::numbers);

/// Comparison of the plan, as estimated, with another.
view::CompareView compared(const Plan& plan, const view::Compared& other);

}  // namespace shardwise::test
