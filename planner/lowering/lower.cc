#include "planner/lowering/lower.h"

#include "planner/lowering/lower_regions.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage_lowering.h"

namespace shardwise {

namespace {

StepProgram lower(const Plan& plan, const LoweringContext& context, Granularity granularity) {
  StepProgram program;
  if (context.buffers) program.plan_digest = digest(plan);
  program.granularity = granularity;
  program.first_step = context.first_step;
  program.num_microbatches = context.num_microbatches;
  program.stages.reserve(context.stages.size());
  for (std::int32_t stage = 0; stage < plan.layout.pp; ++stage) {
    program.stages.push_back(lower_stage(context, stage));
  }
  return program;
}

}  // namespace

StepProgram lower(const Plan& plan, Granularity granularity, StepKind step) {
  return lower(plan, lowering_context(plan, granularity, step == StepKind::first), granularity);
}

StepProgram lower_regions(const Plan& plan, StepKind step) {
  LoweringContext context = lowering_context(plan, Granularity::layer, step == StepKind::first);
  cut_regions(context);
  return lower(plan, context, Granularity::layer);
}

StepProgram lower_without_buffers(const Plan& plan, Granularity granularity,
                                  std::int64_t num_microbatches) {
  LoweringContext context = lowering_context(plan, granularity, false, num_microbatches);
  context.buffers = false;
  return lower(plan, context, granularity);
}

}  // namespace shardwise
