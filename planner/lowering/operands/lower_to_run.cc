#include "planner/lowering/operands/lower_to_run.h"

#include "planner/lowering/operands/data_parallel_operands.h"
#include "planner/lowering/operands/operand_writer.h"
#include "planner/lowering/stage_lowering.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/text/check.h"

namespace shardwise {

StepProgram lower_to_run(const Plan& plan, StepKind step, const DataParallelPlace& place,
                         std::span<const LayerRoom> rooms, bool adds_into_shard,
                         std::int32_t stage) {
  SHARDWISE_CHECK(plan.layout.pp == 1 || plans_buffers(plan.engine), plan.engine.name);
  LoweringContext context = lowering_context(plan, Granularity::layer, step == StepKind::first);
  context.own_kernels = true;
  cut_regions(context);
  StepProgram program;
  program.plan_digest = digest(plan);
  program.first_step = context.first_step;
  program.num_microbatches = context.num_microbatches;
  std::vector<PlacedOperand> placed;
  program.stages.push_back(lower_stage(context, stage, &placed));
  const StateUnits units = state_units(context, stage);
  const RunShape run{&context, &units, place, rooms, adds_into_shard};
  OperandWriter writer(run, program.stages.front(), placed);
  list_operands(writer);
  writer.finish();
  return program;
}

std::vector<TensorPlace> parameters_of(const ModelSpec& model, const StateUnits& units,
                                       std::int32_t layer) {
  const auto l = static_cast<std::size_t>(layer);
  std::vector<TensorPlace> places = units.places[l];
  const LayerSpec& kind = model.kinds[static_cast<std::size_t>(model.layers[l])];
  if (kind.role == LayerRole::head && model.tie_word_embeddings) {
    places.push_back(units.table());
  }
  return places;
}

std::size_t unit_of(const StateUnits& units, const ProgramOp& op) {
  return op.part >= 0 ? static_cast<std::size_t>(op.part) : units.of_layer(op.layer);
}

}  // namespace shardwise
