#include "planner/lowering/operands/state_types.h"

#include "planner/cost/memory/state_bytes.h"

namespace shardwise {
namespace {

DType of_bytes(std::int64_t bytes) { return bytes == 4 ? DType::fp32 : DType::bf16; }

}  // namespace

StateTypes state_types(const LoweringContext& context) {
  const MemoryRules& rules = context.memory_rules;
  const EngineProfile& engine = context.engine();
  const bool in_parameters = engine.main_weights == MainWeights::parameter;
  const bool copies = engine.gradient_buffer == GradientBuffer::copy_in;
  StateTypes types;
  types.compute = of_bytes(rules.weight_bytes);
  types.weights = in_parameters ? of_bytes(rules.parameter_bytes) : types.compute;
  types.main_weights = !in_parameters && rules.main_bytes > 0;
  types.remainders = types.main_weights && context.layout().store_param_remainders;
  types.weights_are_main = in_parameters;
  const DType buffered = of_bytes(gradient_element_bytes(rules, context.layout()));
  types.made = copies ? types.compute : buffered;
  types.gradients = copies ? types.weights : buffered;
  types.reduced = context.gradient_dtype();
  types.casts_gradients =
      engine.casts_gradients_for_optimizer && types.main_weights && types.gradients != DType::fp32;
  return types;
}

}  // namespace shardwise
