#include "planner/cost/layer/operation_memory.h"

#include <algorithm>

#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/autocast_sizes.h"
#include "planner/cost/layer/engine_layer.h"
#include "planner/cost/layer/operation_sizes.h"

namespace shardwise {
namespace {

/// Numbers of the tensors that operations read next, as the layer is walked forward.
struct TensorNumbers {
  int current = 0;       // what the operation before handed on
  int residual = 0;      // the residual stream
  int hidden = 0;        // what the projections of this half of the block read: normed, as a rule
  int routed = 0;        // tokens sorted by expert
  bool by_head = false;  // queries and keys lie head by head, and attention's output as well
  std::vector<int> projected;  // queries, keys, values; or gate, up; one when one kernel makes all
};

bool is_column(const OperationSpec& op) {
  return op.kind == OpKind::gemm && op.tp == TpSplit::column;
}

/// Whether `op` multiplies the same input as the operation before it.
bool is_sibling(const OperationSpec& op, const OperationSpec& before) {
  return is_column(op) && is_column(before) && op.k == before.k && !op.cross &&
         op.routed_expert == before.routed_expert;
}

bool is_hidden_norm(const OperationSpec& op, const OperationSizes& s) {
  return op.tp == TpSplit::none && op.width == s.hidden;
}

bool is_latent(const OperationSpec& op) { return op.name.ends_with("_b_proj"); }

/// Norms that stand before a half of a block read the residual stream whatever was computed last.
bool reads_residual(const OperationSpec& op) {
  return op.name == "attention_norm" || op.name == "mlp_norm" || op.name == "cross_attention_norm";
}

bool is_shared_experts(const OperationSpec& op) { return op.name == "mlp.shared_residual"; }

void read(OperationMemory& m, int tensor, bool keeps) {
  m.reads[static_cast<std::size_t>(m.num_reads)] = tensor;
  m.keeps_read[static_cast<std::size_t>(m.num_reads)] = keeps;
  ++m.num_reads;
}

const OperationSpec& core_of(const LayerSpec& layer, std::size_t from) {
  for (std::size_t i = from; i < layer.operations.size(); ++i) {
    if (layer.operations[i].kind == OpKind::attention) return layer.operations[i];
  }
  return layer.operations[from];
}

/// Attention's output lies head by head as its queries do: the product after it reads a copy.
void read_copy(OperationMemory& m, const OperationSizes& s) {
  if (!m.keeps_read[0]) return;
  m.keeps_read[0] = false;
  m.copies += s.tokens * m.weight_columns * s.bytes;
  m.copies_input = true;
}

/// Whether a rotation leaves a part of every head as it is.
bool rotates_part(const OperationSpec& rope, const OperationSpec& core) {
  return rope.width < (core.heads + core.kv_heads) * core.qk_head_dim;
}

void connect_gemm(OperationMemory& m, const OperationSizes& s, const OperationSpec* before,
                  int number, TensorNumbers& at) {
  const OperationSpec& op = *m.operation;
  const bool attended = before != nullptr && before->kind == OpKind::attention;
  if (attended && at.by_head && s.attention != AttentionKernel::materialised) read_copy(m, s);
  const bool keeps = m.keeps_read[0];
  const bool sibling = before != nullptr && is_sibling(op, *before);
  const bool normed_alone = before != nullptr && before->name == kQueryNorm;
  if (op.routed_expert) {
    read(m, op.tp == TpSplit::row ? at.current : at.routed, keeps);
  } else if (op.tp == TpSplit::row || op.k != s.hidden || is_latent(op) || normed_alone) {
    read(m, at.current, keeps);
  } else {
    read(m, at.hidden, keeps);
  }
  // Of latent attention: the latents are read by their norms, and keys and values join the queries.
  if (op.name.ends_with("_a_proj")) return;
  if (!sibling && !op.name.ends_with("kv_b_proj")) at.projected.clear();
  at.projected.push_back(number);
}

/// Norm of queries or keys: takes the place of the projection it reads.
void connect_head_norm(OperationMemory& m, int number, TensorNumbers& at) {
  const bool separate = at.projected.size() > 1;
  if (!separate) {  // a view of the joined tensor, copied to be normed
    if (m.keeps_read[0]) m.copies += m.output;
    read(m, at.projected.empty() ? at.current : at.projected.front(), false);
    return;
  }
  int& tensor = at.projected[m.operation->name.ends_with("k_norm") ? 1 : 0];
  read(m, tensor, m.keeps_read[0]);
  tensor = number;
}

/// The rotated queries and keys are new; values stay where they are, views of one tensor where one
/// product made all. Only kernels that are not PyTorch's copy those too.
void connect_rope(OperationMemory& m, const OperationSizes& s, bool partial, int number,
                  TensorNumbers& at) {
  const std::size_t projected = at.projected.size();
  for (std::size_t i = 0; i < std::min<std::size_t>(projected, 2); ++i) {
    read(m, at.projected[i], false);
  }
  const bool views = projected == 1 && !s.joins_projections();
  // Where a part of a head is rotated, or may be, modules join it to the rest in a new tensor.
  at.by_head = !s.own_modules() && (views || partial);
  if (projected == 3 || views) {
    at.projected = {number, at.projected.back()};
  } else {
    at.projected = {number};
  }
}

void connect_all_projected(OperationMemory& m, TensorNumbers& at) {
  const bool keeps = m.keeps_read[0];
  if (at.projected.empty()) at.projected.push_back(at.current);
  for (const int tensor : at.projected) {
    if (m.num_reads < OperationMemory::kMaxReads) read(m, tensor, keeps);
  }
}

void size(OperationMemory& m, const LayerSpec& layer, std::size_t index, const OperationSizes& s) {
  switch (m.operation->kind) {
    case OpKind::embedding:
      return size_embedding(m, s);
    case OpKind::gemm:
      return size_gemm(m, s);
    case OpKind::attention:
      return size_attention(m, s);
    case OpKind::norm:
      return size_norm(m, s);
    case OpKind::activation:
      return size_activation(m, s);
    case OpKind::rope:
      return size_rope(m, core_of(layer, index), s);
    case OpKind::residual:
      return size_residual(m, s);
    case OpKind::router:
      return size_router(m, s);
    case OpKind::dispatch:
      return size_dispatch(m, s);
    case OpKind::combine:
      return size_combine(m, s);
    case OpKind::loss:
      return size_loss(m, s);
  }
}

void connect(OperationMemory& m, const LayerSpec& layer, std::size_t index, const OperationSizes& s,
             TensorNumbers& at) {
  const OperationSpec* before = index > 0 ? &layer.operations[index - 1] : nullptr;
  const int number = static_cast<int>(index) + 1;
  const OperationSpec& op = *m.operation;
  switch (op.kind) {
    case OpKind::gemm:
      connect_gemm(m, s, before, number, at);
      break;
    case OpKind::norm:
      if (op.tp == TpSplit::heads) {
        connect_head_norm(m, number, at);
        break;
      }
      read(m, reads_residual(op) ? at.residual : at.current, m.keeps_read[0]);
      if (is_hidden_norm(op, s) && op.name != kQueryNorm) {
        at.hidden = number;
        const bool after_residual = before != nullptr && before->kind == OpKind::residual;
        if (after_residual && !reads_residual(op)) at.residual = number;
      }
      break;
    case OpKind::rope:
      connect_rope(m, s, rotates_part(op, core_of(layer, index)), number, at);
      break;
    case OpKind::attention:
      at.by_head = at.by_head || s.joins_ring_outputs();
      connect_all_projected(m, at);
      break;
    case OpKind::activation:
      connect_all_projected(m, at);
      break;
    case OpKind::residual:
      read(m, at.current, false);
      if (is_shared_experts(op)) break;  // routed and shared experts are added, not the stream
      at.residual = number;
      at.hidden = number;
      break;
    case OpKind::embedding:
      at.residual = number;
      at.hidden = number;
      break;
    case OpKind::dispatch:
      read(m, at.hidden, m.keeps_read[0]);
      at.routed = number;
      break;
    case OpKind::router:
    case OpKind::combine:
    case OpKind::loss:
      read(m, at.current, m.keeps_read[0]);
      break;
  }
  at.current = number;
}

}  // namespace

std::vector<OperationMemory> operation_memories(const ModelSpec& model, const LayerSpec& layer,
                                                const JobSpec& job, const EngineProfile& engine,
                                                const Layout& layout) {
  const OperationSizes s = operation_sizes(model, job, engine, layout);
  const std::vector<OperationSpec>& operations = layer.operations;
  const std::vector<AdaptedLinear> adapted =
      s.names_adapters ? adapted_linears(layer) : std::vector<AdaptedLinear>{};
  std::vector<OperationMemory> memories(operations.size());
  TensorNumbers at;
  std::size_t head = 0;  // of the joined run
  for (std::size_t i = 0; i < operations.size(); ++i) {
    OperationMemory& m = memories[i];
    m.operation = &operations[i];
    size(m, layer, i, s);
    if (!adapted.empty() && m.operation->kind == OpKind::gemm) size_adapter(m, s, adapted[i]);
    const OperationSpec* before = i > 0 ? &operations[i - 1] : nullptr;
    if (s.joins_projections() && before != nullptr && is_sibling(operations[i], *before)) {
      OperationMemory& first = memories[head];
      first.output += m.output;
      first.weight_rows += m.weight_rows;
      m = OperationMemory{};
      m.operation = &operations[i];
      m.joined = true;
      continue;
    }
    head = i;
    connect(m, layer, i, s, at);
    // PyTorch's modules gather a sliced input once for all products that read it; the first keeps
    // it. Source: pytorch/torchtitan@81c12433:torchtitan/models/llama3/infra/parallelize.py,
    // PrepareModuleInput before attention and before the feed-forward part.
    const bool sibling = before != nullptr && is_sibling(operations[i], *before);
    if (sibling && s.sequence_parallel && !s.own_modules() && !m.operation->routed_expert) {
      m.copies = 0;
    }
  }
  widen_under_autocast(memories, layer.role != LayerRole::embedding, s);
  return memories;
}

}  // namespace shardwise
