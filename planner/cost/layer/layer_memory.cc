#include "planner/cost/layer/layer_memory.h"

#include <algorithm>
#include <utility>

#include "planner/cost/layer/autocast_sizes.h"
#include "planner/cost/layer/engine_layer.h"
#include "planner/cost/layer/layer_pass.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/layer/operation_sizes.h"
#include "planner/cost/layer/root_unit.h"
#include "planner/cost/layer/token_table.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

/// Whether the job or the layout asks for this operation, or what it is joined to, to be
/// recomputed.
std::vector<bool> recomputed_operations(const std::vector<OperationMemory>& operations,
                                        const JobSpec& job, const Layout& layout) {
  std::vector<bool> again(operations.size(), false);
  std::size_t head = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationSpec& op = *operations[i].operation;
    if (!operations[i].joined) head = i;
    const bool asked =
        std::ranges::find(job.recompute_operations, op.name) != job.recompute_operations.end();
    const bool core = layout.recompute == Recompute::selective && op.kind == OpKind::attention &&
                      job.attention == AttentionKernel::materialised;
    if (asked || core) again[head] = true;
  }
  return again;
}

/// Whether the engine's units are gathered and reduced as PyTorch's FSDP2 does, with PyTorch's own
/// head: our head has logits by rows, while the weights of the next layer arrive.
bool is_fsdp2(const JobSpec& job, const EngineProfile& engine) {
  return engine.gather == GatherBuffer::copy_out &&
         engine.gradient_buffer == GradientBuffer::copy_in &&
         kernels_of(job, engine) != Kernels::planned;
}

/// Bytes of an element of the residual stream between layers: fp32 under autocast. Norms that PEFT
/// has cast to fp32 hand on fp32, and a product of bitsandbytes returns the type that it is given:
/// so are the stream and its gradient, with adapters of either type. Sharded units keep norms in 16
/// bits. Source: bitsandbytes@0.50.2:bitsandbytes/nn/modules.py, Linear4bit.forward;
/// peft@v0.21.2:src/peft/utils/other.py; both run under autocast (docs/memory.md, Adapters).
std::int64_t stream_element(const LayerSpec& layer, const JobSpec& job, const EngineProfile& engine,
                            const Layout& layout, std::int64_t bytes) {
  const bool widened = std::ranges::any_of(layer.parameters, is_remainder);
  return autocasts(job, engine) || (widened && layout.zero_stage < 3) ? kFp32Bytes : bytes;
}

PassRules pass_rules(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                     const EngineProfile& engine, const Layout& layout,
                     const std::vector<OperationMemory>& operations) {
  PassRules rules;
  const std::int64_t tokens = layout.micro_batch_size * ceil_div(job.sequence_length, layout.cp);
  const std::int64_t bytes = job.precision == DType::fp32 ? 4 : 2;
  const bool is_input = layer.role == LayerRole::embedding;
  rules.input = is_input
                    ? 0
                    : (layout.sequence_parallel ? ceil_div(tokens, layout.tp) : tokens) *
                          model.hidden_size * stream_element(layer, job, engine, layout, bytes);
  rules.gradient_bytes = bytes;
  if (kernels_of(job, engine) == Kernels::planned) {
    rules.stream = (layout.sequence_parallel ? ceil_div(tokens, layout.tp) : tokens) *
                   model.hidden_size * bytes;
  }
  const bool buffered = engine.gradient_buffer != GradientBuffer::copy_in;
  rules.weight_gradients = job.frozen_base ? WeightGradients::fused
                           : !buffered     ? WeightGradients::accumulated
                           : job.fused_gradient_accumulation || rules.stream > 0
                               ? WeightGradients::fused
                               : WeightGradients::temporary;
  rules.whole_layer_again = layout.recompute == Recompute::full && is_block(layer.role);
  const Kernels kernels = kernels_of(job, engine);
  rules.again = recomputed_operations(operations, job, layout);
  rules.saved = saved_tensors(operations, job, bytes, rules.again, rules.input);
  rules.interiors_only = job.recompute_operations.empty();
  const bool planned = kernels_of(job, engine) == Kernels::planned;
  const bool casts = layout.zero_stage == 0 && joins_root(engine, layout, planned);  // NO_SHARD
  rules.loss_apart = layer.role == LayerRole::head && (is_fsdp2(job, engine) || casts);
  // PyTorch's selective checkpointing runs the block again at the first tensor that is missing.
  const bool some = std::ranges::find(rules.again, true) != rules.again.end();
  rules.region = kernels == Kernels::eager && !job.recompute_operations.empty() && some;
  // Our executor runs all of a layer that runs again before its backward pass.
  rules.again_at_once =
      rules.whole_layer_again || rules.region || (kernels == Kernels::planned && some);
  return rules;
}

/// What embedding and head are apart from the blocks.
void add_outer(LayerMemory& memory, const std::vector<OperationMemory>& operations,
               const JobSpec& job, const EngineProfile& engine, const PassRules& rules) {
  const bool head = memory.role == LayerRole::head;
  if (!head && memory.role != LayerRole::embedding) return;
  memory.loss_apart = rules.loss_apart;
  // Norm and head are one unit, as torchtitan makes them; Megatron's head is one by itself.
  const bool grouped = is_fsdp2(job, engine) && engine.kernels != Kernels::transformer_engine;
  memory.reduces_apart = grouped && memory.parameters.vocabulary > 0;
  const std::int64_t bytes = autocasts(job, engine) ? kFp32Bytes : rules.gradient_bytes;
  if (!head) {
    memory.reduction.gradients = memory.parameters.dense * bytes;
    memory.reduction.peak = memory.reduction.gradients;
  }
  const bool sums = rules.weight_gradients != WeightGradients::fused && rules.stream == 0;
  if (!has_tied_table(memory) || !sums) return;
  for (const OperationMemory& m : operations) {
    if (m.operation->kind != OpKind::gemm || m.operation->tp != TpSplit::vocab) continue;
    memory.tied_gradient += m.weight_rows * m.weight_columns * bytes;
  }
}

/// FSDP1 lets go of a unit of which nothing is trained when the gradient of its input is there, by
/// a hook on that input. A reentrant checkpoint runs the block again on a detached input, a leaf:
/// the hook holds the leaf's node, the node the leaf and the leaf the hook, until FSDP removes its
/// hooks at the end of backward. So the input and its gradient stay. Source:
/// pytorch@v2.4.0:torch/distributed/fsdp/_runtime_utils.py,
/// _register_post_backward_reshard_only_hook and _finalize_params;
/// torch/autograd/graph.py, register_multi_grad_hook; torch/utils/checkpoint.py,
/// CheckpointFunction.backward.
std::int64_t left_by_block(const LayerMemory& memory, const JobSpec& job,
                           const EngineProfile& engine, const PassRules& rules) {
  const bool frozen = job.frozen_base && engine.gather == GatherBuffer::rate_limited;
  const bool reentrant = rules.whole_layer_again && !job.recompute_stops_early;
  return frozen && reentrant ? 2 * memory.input : 0;
}

void add_shape(LayerMemory& memory, const OperationMemory& m) {
  const MatrixShape shape = {m.weight_rows, m.weight_columns};
  for (std::int32_t i = 0; i < memory.shapes; ++i) {
    if (memory.shape[static_cast<std::size_t>(i)] == shape) return;
  }
  SHARDWISE_CHECK(memory.shapes < kMaxMatrixShapes, "more matrices than a layer may have");
  memory.shape[static_cast<std::size_t>(memory.shapes++)] = shape;
}

/// Kept tensors and copies of the routed experts' operations.
std::int64_t routed_bytes(const std::vector<OperationMemory>& operations, const PassRules& rules) {
  const KeptTensors kept = kept_tensors(operations, rules);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationMemory& m = operations[i];
    if (!m.operation->routed_expert) continue;
    if (kept.tensor[i + 1]) sum += rules.saved.bytes[i + 1];
    if (kept.copies[i]) sum += m.copies;
  }
  return sum;
}

/// What the layer makes the stage hold from the first pass on.
void add_layer_residents(LayerMemory& memory, const std::vector<OperationMemory>& operations,
                         const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                         const Layout& layout) {
  const bool te = kernels_of(job, engine) == Kernels::transformer_engine;
  const bool megatron = engine.kernels == Kernels::transformer_engine;
  const bool overlaps = job.tp_overlap == TpOverlap::pipelined && layout.tp > 1;
  const OperationSizes s = operation_sizes(model, job, engine, layout);
  const std::int64_t sequence = ceil_div(job.sequence_length, layout.cp);
  // Scores are written over one buffer for all layers, which stays: the global memory buffer of
  // Megatron's own attention. Source: NVIDIA/Megatron-LM@d98e8a64,
  // megatron/core/transformer/dot_product_attention.py:189.
  const auto scores_of = [&](const OperationMemory& m) {
    return s.tokens * ceil_div(std::int64_t{m.operation->heads}, s.tp) * s.sequence * s.bytes;
  };
  std::int64_t angles = 0;
  std::int64_t mask = 0;
  for (const OperationMemory& m : operations) {
    const OperationSpec& op = *m.operation;
    if (op.kind == OpKind::rope) angles = sequence * model.head_dim * 4;
    if (op.kind == OpKind::attention && job.attention_mask_in_batch) {
      mask = layout.micro_batch_size * sequence * job.sequence_length;
    }
    if (op.kind == OpKind::attention && job.attention == AttentionKernel::materialised) {
      memory.framework_gemm = true;
      if (megatron && !te) memory.gather_buffer = std::max(memory.gather_buffer, scores_of(m));
    }
    if (op.kind != OpKind::gemm || m.joined) continue;
    const bool router = op.name.ends_with("router_proj");
    const bool own = te && op.tp != TpSplit::vocab && !router;
    (own ? memory.engine_gemm : memory.framework_gemm) = true;
    memory.engine_gemm = memory.engine_gemm || (megatron && router);
    memory.grouped_gemm = memory.grouped_gemm || (own && op.routed_expert && job.grouped_gemm);
    memory.overlapped_gemm = memory.overlapped_gemm || (own && !op.routed_expert && overlaps);
    if (s.is_narrow(op) && !job.frozen_base) {
      LayerParameters& p = memory.parameters;
      (op.routed_expert && routed_apart(engine, layout) ? p.narrow_routed : p.narrow_dense) +=
          m.weight_rows * m.weight_columns * m.weights;
    }
    // Frozen matrices have no gradient to be a placeholder of.
    const bool adds = fuses_weight_gradients(job, engine) && !job.frozen_base;
    if (te && adds && !op.name.ends_with("router_proj")) {
      add_shape(memory, m);
    }
    if (te && op.tp == TpSplit::vocab && layout.sequence_parallel && layout.tp > 1) {
      memory.gather_buffer =
          std::max(memory.gather_buffer, layout.micro_batch_size * sequence * op.k * 2);
    }
  }
  memory.tables = angles + mask;
}

}  // namespace

LayerMemory layer_memory(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout) {
  const EngineLayer own(layer, engine);
  LayerMemory memory;
  memory.role = layer.role;
  memory.parameters = layer_parameters(*own, job, engine, layout);
  const std::vector<OperationMemory> operations =
      operation_memories(model, *own, job, engine, layout);
  const PassRules rules = pass_rules(model, *own, job, engine, layout, operations);
  memory.input = rules.input;
  memory.left_behind = left_by_block(memory, job, engine, rules);
  if (rules.whole_layer_again && layout.recompute_interval > 1) {
    PassRules whole = rules;
    whole.whole_layer_again = whole.again_at_once = false;
    walk_layer(operations, whole, memory);
    memory.recompute_interval = layout.recompute_interval;
    memory.saved_whole = memory.saved;
    memory.forward_whole = memory.forward;
    memory.backward_whole = memory.backward;
    memory.leaving_whole = std::exchange(memory.leaving, {});
    memory.forward = memory.backward = {};
  }
  walk_layer(operations, rules, memory);
  add_layer_residents(memory, operations, model, job, engine, layout);
  add_outer(memory, operations, job, engine, rules);
  memory.routed_saved = routed_bytes(operations, rules);
  return memory;
}

std::vector<LayerMemory> layer_memories(const ModelSpec& model, const JobSpec& job,
                                        const EngineProfile& engine, const Layout& layout) {
  std::vector<LayerMemory> memories;
  memories.reserve(model.kinds.size());
  for (const LayerSpec& layer : model.kinds) {
    memories.push_back(layer_memory(model, layer, job, engine, layout));
  }
  return memories;
}

SavedTensors layer_saves(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout) {
  const std::vector<OperationMemory> operations =
      operation_memories(model, layer, job, engine, layout);
  return pass_rules(model, layer, job, engine, layout, operations).saved;
}

std::vector<KeptActivation> kept_activations(const ModelSpec& model, const LayerSpec& layer,
                                             const JobSpec& job, const EngineProfile& engine,
                                             const Layout& layout) {
  const EngineLayer own(layer, engine);
  const std::vector<OperationMemory> operations =
      operation_memories(model, *own, job, engine, layout);
  const PassRules rules = pass_rules(model, *own, job, engine, layout, operations);
  const KeptTensors kept = kept_tensors(operations, rules);
  std::vector<KeptActivation> result;
  std::vector<bool> counted(operations.size() + 1, false);
  const auto tensor = [&](int number) -> std::int64_t {
    const auto t = static_cast<std::size_t>(number);
    if (!kept.tensor[t] || counted[t]) return 0;
    counted[t] = true;
    return rules.saved.bytes[t];
  };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationMemory& m = operations[i];
    KeptActivation each;
    each.operation = m.operation->name;
    for (int r = 0; r < m.num_reads; ++r) {
      const auto k = static_cast<std::size_t>(r);
      if (m.keeps_read[k] || rules.whole_layer_again) each.bytes += tensor(m.reads[k]);
    }
    if (m.keeps_output) each.bytes += tensor(static_cast<int>(i) + 1);
    if (kept.copies[i]) {
      each.bytes += m.copies + m.statistics;
      each.statistics = m.statistics;
    }
    if (each.bytes > 0) result.push_back(each);
  }
  return result;
}

}  // namespace shardwise
