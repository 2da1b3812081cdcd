#include "planner/cost/kernels/flops.h"

#include "planner/cost/kernels/compute.h"

namespace shardwise {

ModelFlops model_flops(const ModelSpec& model, const JobSpec& job) {
  const auto tokens = static_cast<double>(job.sequence_length);
  Flops causal;
  Flops whole;
  double weights = 0;
  for (const int index : model.layers) {
    for (const OperationSpec& op : model.kinds[static_cast<std::size_t>(index)].operations) {
      if (op.kind == OpKind::gemm) {
        const double copies =
            op.routed_expert ? static_cast<double>(model.num_experts_per_tok) : 1.0;
        weights += copies * static_cast<double>(op.width) * static_cast<double>(op.k);
      } else if (op.kind == OpKind::attention) {
        AttentionWork work;
        work.heads = op.heads;
        work.kv_heads = op.kv_heads;
        work.seq_q = job.sequence_length;
        work.seq_kv = job.sequence_length;
        work.qk_head_dim = op.qk_head_dim;
        work.v_head_dim = op.v_head_dim;
        work.window = op.window;
        work.causal = op.causal;
        causal += attention_flops(work, Pass::forward);
        work.window = 0;
        work.causal = false;
        whole += attention_flops(work, Pass::forward);
      }
    }
  }
  // Frozen weights have no gradients of their own: forward, and the input's gradient backward.
  const double times = job.frozen_base ? 4 : 6;
  const Flops products(times * weights * tokens);
  return {products + 3.0 * causal, products + 3.0 * whole, weights, times};
}

}  // namespace shardwise
