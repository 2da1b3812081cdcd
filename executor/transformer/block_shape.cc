#include "executor/transformer/block_shape.h"

#include <algorithm>
#include <initializer_list>

#include "planner/cost/layer/key_heads.h"

namespace shardwise::exec {
namespace {

std::vector<Projection> projections(const LayerSpec& layer,
                                    std::initializer_list<const char*> names, std::int64_t tp,
                                    std::int64_t kv_heads) {
  std::vector<Projection> found;
  for (const char* name : names) {
    const OperationSpec* op = find_operation(layer, name);
    if (op == nullptr) continue;
    const std::int64_t ways = is_of_key_heads(*op) ? std::min(tp, kv_heads) : tp;
    found.push_back({parameters_of(layer, name), op->width / ways});
  }
  return found;
}

}  // namespace

BlockShape block_shape(const ModelSpec& model, const LayerSpec& layer, const LayerShape& shape) {
  const OperationSpec& core = *find_operation(layer, "self_attn.core");
  const OperationSpec& activation = *find_operation(layer, "mlp.activation");
  BlockShape b;
  b.batch = shape.batch;
  b.sequence = shape.sequence;
  b.hidden = model.hidden_size;
  b.heads = core.heads / shape.tp;
  b.kv_heads = std::max<std::int64_t>(1, core.kv_heads / shape.tp);
  b.head_dim = core.qk_head_dim;
  b.window = core.window;
  b.intermediate = activation.width / shape.tp;
  b.dtype = shape.storage;
  b.gradient = shape.gradients;
  b.shared = shape.tp > 1;
  b.spread = shape.sequence_parallel ? shape.tp : 1;
  b.leads = shape.tp_rank == 0;
  b.recompute = shape.recompute;
  b.again = shape.again;
  b.rms = find_operation(layer, "attention_norm")->rms;
  b.rope = find_operation(layer, "self_attn.rope") != nullptr;
  b.head_norms = find_operation(layer, "self_attn.q_norm") != nullptr;
  b.gated = activation.gated;
  b.epsilon = static_cast<float>(model.numerics.norm_epsilon);
  b.gelu = model.numerics.activation == ActivationFunction::gelu_erf ? Gelu::erf : Gelu::tanh;
  b.attention_norm = parameters_of(layer, "attention_norm");
  b.q_norm = parameters_of(layer, "self_attn.q_norm");
  b.k_norm = parameters_of(layer, "self_attn.k_norm");
  b.o = parameters_of(layer, "self_attn.o_proj");
  b.mlp_norm = parameters_of(layer, "mlp_norm");
  b.down = parameters_of(layer, "mlp.down_proj");
  b.attention = projections(
      layer, {"self_attn.qkv_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
      shape.tp, core.kv_heads);
  b.mlp = projections(layer, {"mlp.gate_up_proj", "mlp.gate_proj", "mlp.up_proj"}, shape.tp,
                      core.kv_heads);
  // A matrix cut by columns is cut along the dimension of its outputs.
  const auto first = static_cast<std::size_t>(b.attention.front().parameters.weight);
  b.transposed = layer.parameters[first].tp_dim == 1;
  return b;
}

}  // namespace shardwise::exec
