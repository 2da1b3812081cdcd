#include "planner/cost/step/overlap_loss.h"

namespace shardwise {
namespace {

KernelShares shares_of(const PassTime& pass) {
  const Seconds all = pass.stream();
  if (all <= Seconds(0)) return {};
  return {pass.gemm / all, (pass.compute() - pass.gemm) / all};
}

PassKernels kernels_of(const StageTime& stage) {
  PassTime backward = stage.backward;
  backward += stage.recompute;
  return {shares_of(stage.forward), shares_of(backward)};
}

}  // namespace

StageKernels stage_kernels(const StageTimes& stages) {
  return {kernels_of(stages.slowest), kernels_of(stages.first)};
}

PassLosses pass_losses(const PassKernels& kernels, const LeafContext& context) {
  const TimeRules& rules = *context.rules;
  const auto tax = [&](bool across) -> const OverlapTax& {
    return across ? rules.overlap_tax_inter : rules.overlap_tax_intra;
  };
  const OverlapTax& inner = tax(shards_across_nodes(context));
  const OverlapTax& outer = tax(replicas_across_nodes(context));
  return {{kernels.forward, inner, outer}, {kernels.backward, inner, outer}};
}

}  // namespace shardwise
