#include "planner/cost/layer/operation_sizes.h"

#include <algorithm>
#include <bit>

#include "planner/cost/layer/autocast_sizes.h"
#include "planner/cost/layer/expert_load.h"
#include "planner/cost/layer/key_heads.h"
#include "planner/cost/layer/saved_tensors.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/text/units.h"

namespace shardwise {

OperationSizes operation_sizes(const ModelSpec& model, const JobSpec& job,
                               const EngineProfile& engine, const Layout& layout) {
  OperationSizes s;
  s.kernels = kernels_of(job, engine);
  s.megatron = engine.kernels == Kernels::transformer_engine;
  s.attention = job.attention;
  s.loss = loss_of(job, engine);
  s.repeats = job.repeat_key_values;
  s.rms_norm = rms_norm_of(job, engine);
  s.cp_kind = layout.cp_kind;
  s.bytes = job.precision == DType::fp32 ? 4 : 2;
  s.tokens = layout.micro_batch_size * ceil_div(job.sequence_length, layout.cp);
  s.spread = layout.sequence_parallel ? ceil_div(s.tokens, layout.tp) : s.tokens;
  // Each rank routes the tokens it holds; the experts of an etp group see what its ranks send.
  s.routed = static_cast<std::int64_t>(
      static_cast<double>(s.spread * model.num_experts_per_tok * layout.etp) *
      busiest_expert_rank(model, job, layout));
  s.sequence = job.sequence_length;
  s.batch = layout.micro_batch_size;
  s.hidden = model.hidden_size;
  s.head_dim = model.head_dim;
  s.tp = layout.tp;
  s.head_copies = shardwise::head_copies(model.num_key_value_heads, engine, layout);
  s.cp = layout.cp;
  s.ep = layout.ep;
  s.etp = layout.etp;
  s.experts_per_token = model.num_experts_per_tok;
  s.fp32_probabilities = !model.model_type.starts_with("qwen") && model.model_type != "gpt_oss";
  s.local_experts = ceil_div(model.num_experts, layout.ep);
  s.vocabulary_multiple = engine.vocabulary_multiple;
  s.sequence_parallel = layout.sequence_parallel && layout.tp > 1;
  s.chunk_rows = job.loss_chunk_rows;
  s.dropout = job.dropout > 0;
  s.relu = model.numerics.activation == ActivationFunction::relu;
  s.gelu_new = model.numerics.activation == ActivationFunction::gelu_new;
  s.frozen = job.frozen_base;
  s.names_adapters = job.frozen_base && has_adapters(model);
  s.wide_adapters = s.names_adapters && multiplies_adapters_wide(job, engine);
  s.autocasts = shardwise::autocasts(job, engine);
  s.precision = job.precision;
  s.recipe = job.fp8_recipe;
  s.saved_inputs = job.saved_linear_inputs;
  s.narrow = job.precision == DType::fp8 || job.precision == DType::fp4;
  s.keeps_narrow = s.kernels == Kernels::transformer_engine;
  s.gathers_narrow = job.fp8_parameter_gather;
  s.fuses_weight_gradient = fuses_weight_gradients(job, engine);
  return s;
}

std::int64_t OperationSizes::narrow_bytes(std::int64_t elements) const {
  constexpr std::int64_t kBlock = 32;  // elements that share a byte of scale, or 128 four
  constexpr std::int64_t kFp4Block = 16;
  if (precision == DType::fp4) return ceil_div(elements, 2) + ceil_div(elements, kFp4Block);
  return elements + (recipe == Fp8Recipe::block ? ceil_div(elements, kBlock) : 0);
}

std::int64_t OperationSizes::summed_width(const OperationSpec& op) const {
  constexpr std::int64_t kStep = 32;  // twice as much above four steps
  if (own_modules()) return op.qk_head_dim;
  return round_up(op.qk_head_dim, op.qk_head_dim <= 4 * kStep ? kStep : 2 * kStep);
}

std::int64_t OperationSizes::cut(std::int64_t width, const OperationSpec& op) const {
  if (op.tp == TpSplit::none || op.tp == TpSplit::row) return width;
  if (op.tp == TpSplit::vocab) return padded_vocabulary(width, vocabulary_multiple, tp) / tp;
  if (head_copies > 1 && is_of_key_heads(op)) return ceil_div(width, tp / head_copies);
  return ceil_div(width, op.routed_expert ? etp : tp);
}

std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t multiple, std::int64_t tp) {
  return round_up(vocabulary, multiple * tp);
}

void size_norm(OperationMemory& m, const OperationSizes& s) {
  const OperationSpec& op = *m.operation;
  const bool by_head = op.tp == TpSplit::heads;
  const std::int64_t tokens = by_head ? s.tokens : s.spread;
  const std::int64_t width = s.cut(op.width, op);
  const std::int64_t rows = tokens * (by_head ? ceil_div(width, s.head_dim) : 1);
  m.output = tokens * width * s.bytes;
  m.input_gradient = m.output;
  m.keeps_read[0] = true;
  m.statistics = rows * kFp32Bytes * (op.rms ? 1 : 2);  // 1 / sigma, and the mean of a LayerNorm
  // transformers' RMSNorm works on an fp32 copy, and keeps that and the value before the gain.
  if (op.rms && s.composes_norms()) {
    // That value is needed for the gradient of the gain alone.
    const std::int64_t scaled = s.frozen ? 0 : op.fp32 ? kFp32Bytes : s.bytes;
    m.keeps_read[0] = false;
    m.copies = tokens * width * (kFp32Bytes + scaled);
    m.forward_extra = tokens * width * kFp32Bytes;
    // While the square has its gradient there are six fp32 tensors, of which the copy is kept, by
    // PyTorch 2.15.0's own run. The value before the gain is gone by then, and so are the gradients
    // of input and output, which are counted apart.
    m.backward_extra = tokens * width * 6 * kFp32Bytes - m.copies - m.output - m.input_gradient;
  }
}

namespace {

/// A product in 8 bits of rows x k by k x n.
void size_narrow(OperationMemory& m, const OperationSizes& s, std::int64_t rows, std::int64_t k,
                 std::int64_t n) {
  const bool slice =
      s.sequence_parallel && !m.operation->routed_expert && m.operation->tp == TpSplit::column;
  const std::int64_t input = s.narrow_bytes((slice ? s.spread : rows) * k);
  const std::int64_t gradient = s.narrow_bytes(rows * n);
  if (s.keeps_narrow) {
    // Transformer Engine casts the input once and keeps the cast in its place; matrices are cast
    // once a step. Source: NVIDIA/TransformerEngine@d0067d0d,
    // transformer_engine/pytorch/module/linear.py, saved_inputmat and _fp8_workspaces.
    if (m.keeps_read[0]) {
      m.keeps_read[0] = false;
      m.copies += input;
      m.copies_input = true;
    }
    m.backward_extra += gradient;
    return;
  }
  // torchao keeps the input as it came and casts input, matrix and gradient when they are read.
  // Source: pytorch/ao, torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args.
  const std::int64_t matrix = s.gathers_narrow ? 0 : s.narrow_bytes(n * k);
  m.forward_extra += input + matrix;
  m.backward_extra += gradient + (matrix > input ? matrix : input);
}

}  // namespace

void size_gemm(OperationMemory& m, const OperationSizes& s) {
  const OperationSpec& op = *m.operation;
  const bool row = op.tp == TpSplit::row;
  const std::int64_t ways = op.routed_expert ? s.etp : s.tp;
  const std::int64_t k = row ? ceil_div(op.k, ways) : op.k;
  const std::int64_t n = s.cut(op.width, op);
  const bool whole = op.tp == TpSplit::none;
  const std::int64_t rows_in = op.routed_expert ? s.routed : s.tokens;
  const std::int64_t rows_out = op.routed_expert ? s.routed : row || whole ? s.spread : s.tokens;
  m.output = rows_out * n * (op.fp32 ? kFp32Bytes : s.bytes);
  m.input_gradient = (whole && !op.routed_expert ? s.spread : rows_in) * k * s.bytes;
  // A frozen matrix needs nothing but itself to hand its gradient back; LoRA's adapters of queries
  // and values read what these read (Hu et al., arXiv:2106.09685, section 4.2).
  const bool adapted =
      !s.names_adapters && (op.name.ends_with("q_proj") || op.name.ends_with("v_proj"));
  m.keeps_read[0] = !s.frozen;
  // The adapter reads its input through dropout: a copy and a mask.
  if (s.frozen && adapted) m.copies = s.tokens * k * (s.bytes + kMaskBytes);
  m.weight_rows = n;
  m.weight_columns = k;
  m.weights = op.routed_expert ? s.local_experts : 1;
  m.loss = op.tp == TpSplit::vocab;

  const bool gathers = s.sequence_parallel && !row && !whole && !op.routed_expert;
  if (gathers) {
    const std::int64_t whole_input = s.tokens * k * s.bytes;
    if (s.own_modules()) {
      // The input is gathered anew in backward; its gradient is reduce-scattered to a slice.
      m.forward_extra = m.loss ? 0 : whole_input;
      m.backward_extra = (m.loss ? 0 : whole_input) + s.spread * k * s.bytes;
    } else {
      m.keeps_read[0] = false;
      m.copies = saved_bytes(s.tokens * k, s.saved_inputs, s.bytes);
      if (m.copies < whole_input && !s.is_narrow(op)) m.backward_extra += whole_input;
    }
  }
  const std::int64_t gathered_gradient = row && s.sequence_parallel ? s.tokens * n * s.bytes : 0;
  m.backward_extra += gathered_gradient;
  m.forward_extra += gathered_gradient;  // the product before it is reduce-scattered
  if (m.loss && (s.loss == LossKernel::chunked || s.by_rows())) m.output = 0;
  if (s.is_narrow(op)) size_narrow(m, s, rows_in, k, n);
}

namespace {

/// PyTorch's context parallelism. Outputs and gradients are summed in fp32; forward has the sum, a
/// step's output and their new sum of a half of the tokens, joined to the other half. Backward is
/// fullest in the second step: gradients of queries, keys and values in fp32, those of keys and
/// values in the two buffers of their exchange as well; keys and values in use, joined and
/// received; gradients of the step before and of this one, which is of a half of the keys. Source:
/// pytorch@v2.15.0:torch/distributed/tensor/experimental/_context_parallel/_attention.py,
/// _templated_ring_attention and its backward.
void size_ring(OperationMemory& m, const OperationSizes& s, std::int64_t queries,
               std::int64_t key_values) {
  const bool gathers = s.cp_kind == ContextParallelKind::all_gather;
  m.forward_extra = ceil_div(11 * m.output, 2) + (gathers ? s.cp + 1 : 3) * key_values;
  const std::int64_t received = gathers ? s.cp : std::min<std::int64_t>(s.cp, 3) - 1;
  const bool grouped = key_values < 2 * queries && !s.repeats_keys();
  m.backward_extra +=
      (grouped ? 2 : 3) * queries + ceil_div(15 * key_values, 2) + received * key_values;
}

}  // namespace

void size_attention(OperationMemory& m, const OperationSizes& s) {
  const OperationSpec& op = *m.operation;
  const std::int64_t heads = ceil_div(op.heads, s.tp);
  const std::int64_t kv_heads = ceil_div(op.kv_heads, s.tp);
  const std::int64_t queries = s.tokens * heads * op.qk_head_dim * s.bytes;
  const std::int64_t key_values = s.tokens * kv_heads * (op.qk_head_dim + op.v_head_dim) * s.bytes;
  m.output = s.tokens * heads * op.v_head_dim * s.bytes;
  m.input_gradient = queries + key_values;
  m.keeps_read[0] = true;

  if (s.attention == AttentionKernel::materialised) {
    // Softmax output; with dropout its mask and what is left: 5 a s^2 b in bf16.
    const std::int64_t scores = s.tokens * heads * s.sequence;
    m.copies = scores * (s.dropout ? 2 * s.bytes + kMaskBytes : s.bytes);
    m.forward_extra = scores * s.bytes;
    m.backward_extra = 2 * scores * s.bytes;
    if (s.autocasts && s.kernels == Kernels::eager) {
      // Softmax makes fp32, of a cast; the product after it reads a cast of its own. Backward the
      // gradients of both are fp32.
      m.copies = scores * (kFp32Bytes + s.bytes + (s.dropout ? kMaskBytes : 0));
      m.forward_extra += scores * kFp32Bytes;
      m.backward_extra = 2 * scores * kFp32Bytes;
    }
    return;
  }
  m.keeps_output = true;
  m.statistics = s.tokens * heads * kFp32Bytes;  // log-sum-exp of each row
  m.backward_extra = s.tokens * heads * (s.summed_width(op) + 1) * kFp32Bytes;  // dQ, rows of dO O
  // FlashAttention makes the gradients of grouped keys and values for every query head, then adds
  // them up. Source: pytorch@v2.15.0:aten/src/ATen/native/transformers/cuda/flash_attn/
  // flash_api.cpp, mha_bwd, dk_expanded.
  if (!s.own_modules() && !s.repeats_keys() && kv_heads < heads) {
    m.backward_extra += s.tokens * heads * (op.qk_head_dim + op.v_head_dim) * s.bytes;
  }
  // Megatron's tensors are [sequence, batch, …]: with several sequences the output is copied, and
  // the copy is what the output projection keeps.
  const bool reorders = s.attention == AttentionKernel::flash && s.megatron;
  if (reorders && s.batch > 1) m.copies = m.output;
  if (s.cp == 1) return;
  if (s.cp_kind == ContextParallelKind::ulysses) {
    m.copies += m.output;  // the output before its all-to-all, besides the one after
    m.forward_extra = queries + key_values;
    m.backward_extra += m.output + queries + key_values;
  } else if (s.joins_ring_outputs()) {
    size_ring(m, s, queries, key_values);
  } else {
    // Keys and values of the other ranks, and one partial output a step. Backward a ring has those
    // of a step and their gradients. An all-gather has them all again, and all their gradients
    // before they are reduced to a rank's.
    // Source: NVIDIA/TransformerEngine:transformer_engine/pytorch/attention/dot_product_attention/
    // context_parallel.py, AttnFuncWithCPAndKVAllGather.backward.
    m.forward_extra = s.cp * key_values + ceil_div((s.cp + 1) * m.output, 2);
    const bool whole = s.cp_kind == ContextParallelKind::all_gather;
    m.backward_extra += (whole ? s.cp : 1) * 2 * key_values;
  }
}

void size_rope(OperationMemory& m, const OperationSpec& core, const OperationSizes& s) {
  const std::int64_t heads = ceil_div(core.heads, s.tp);
  const std::int64_t kv_heads = ceil_div(core.kv_heads, s.tp);
  const std::int64_t row = s.tokens * s.bytes;
  m.output = row * (heads + kv_heads) * core.qk_head_dim;
  // Values come along where they were made together with queries and keys.
  const bool latent = core.qk_head_dim != core.v_head_dim;
  if (s.joins_projections() || latent) m.output += row * kv_heads * core.v_head_dim;
  m.input_gradient = m.output;
  // What attention keeps in place of grouped keys and values, beyond their own bytes.
  if (s.repeats_keys()) {
    m.copies = row * (heads - kv_heads) * (core.qk_head_dim + core.v_head_dim);
  }
}

void size_residual(OperationMemory& m, const OperationSizes& s) {
  m.output = s.spread * m.operation->width * s.bytes;
  m.input_gradient = m.output;
  if (s.dropout) m.copies = s.spread * m.operation->width * kMaskBytes;
}

void size_router(OperationMemory& m, const OperationSizes& s) {
  const std::int64_t experts = m.operation->k;
  m.output = s.spread * experts * kFp32Bytes;  // probabilities, zero where not chosen
  m.input_gradient = m.output;
  // Softmax of the logits, the choice as a map, the probabilities of the auxiliary loss.
  m.statistics = s.spread * experts * (2 * kFp32Bytes + kMaskBytes);
}

void size_dispatch(OperationMemory& m, const OperationSizes& s) {
  const std::int64_t width = m.operation->width;
  const std::int64_t sent = s.spread * s.experts_per_token * width * s.bytes;
  m.output = s.routed * width * s.bytes;
  m.input_gradient = s.spread * width * s.bytes;
  m.statistics = 2 * s.routed * kFp32Bytes;  // where each copy came from, and its probability
  m.forward_extra = m.backward_extra = s.ep > 1 ? sent : 0;
}

void size_combine(OperationMemory& m, const OperationSizes& s) {
  const std::int64_t width = m.operation->width;
  m.output = s.spread * width * s.bytes;
  m.input_gradient = s.routed * width * s.bytes;
  m.forward_extra = s.ep > 1 ? m.input_gradient : 0;
  m.backward_extra = s.ep > 1 ? m.input_gradient : 0;
  if (s.own_modules()) return;
  // PyTorch's modules multiply what the experts made by its probability here, whose gradient needs
  // it, and bring the products back into the order of the tokens. Backward has the gradient of the
  // products, and of both factors. Source: transformers 5.23.0, integrations/moe.py,
  // grouped_mm_experts_forward.
  m.keeps_read[0] = !s.frozen;
  const std::int64_t product = s.routed * width * (s.fp32_probabilities ? kFp32Bytes : s.bytes);
  m.forward_extra += 2 * product;
  m.backward_extra += 3 * product - m.input_gradient;
}

void size_embedding(OperationMemory& m, const OperationSizes& s) {
  const OperationSpec& op = *m.operation;
  m.output = s.spread * op.width * s.bytes;
  const bool by_vocabulary = op.tp == TpSplit::vocab;
  m.statistics = s.tokens * 8;          // token numbers
  if (s.kernels == Kernels::planned) {  // rows are added to the table's gradient where it is
    if (!by_vocabulary) m.statistics = 0;
    const bool gathers = by_vocabulary && s.sequence_parallel;  // the gradient of all sums
    m.forward_extra = m.backward_extra = gathers ? s.tokens * op.width * s.bytes : 0;
    return;
  }
  // Without a buffer to add to, the gradient of the whole table is a tensor of its own.
  m.backward_extra = (by_vocabulary ? s.cut(op.k, op) : op.k) * op.width * s.bytes;
}

std::int64_t loss_chunk_rows(std::int64_t asked, std::int64_t tokens, std::int64_t vocabulary,
                             std::int64_t hidden) {
  if (asked == kOpenLossRows) asked = kUsualLossRows;
  if (asked > 0) return std::min(asked, tokens);
  // Fewer rows multiply no faster than the head's matrix and its gradient are read and written.
  constexpr std::int64_t kLeastRows = 256;
  const std::int64_t chunks = ceil_div(vocabulary, hidden);
  const auto rows = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(ceil_div(tokens, chunks))));
  return std::min(tokens, std::max(rows, kLeastRows));
}

std::int64_t OperationSizes::loss_rows(const OperationSpec& op) const {
  return loss_chunk_rows(kernels == Kernels::planned ? chunk_rows : 0, tokens, op.width, hidden);
}

void size_loss(OperationMemory& m, const OperationSizes& s) {
  const OperationSpec& op = *m.operation;
  const std::int64_t logits = s.tokens * s.cut(op.width, op);
  m.loss = true;
  if (s.by_rows()) {
    const std::int64_t rows = s.loss == LossKernel::chunked ? s.loss_rows(op) : s.tokens;
    // Logits of some rows, the loss of every row, and what ranks that share logits know of those.
    const std::int64_t known = s.tp > 1 ? rows * s.tp * kRowStatisticsBytes : 0;
    m.backward_extra = rows * s.cut(op.width, op) * s.bytes + s.tokens * kFp32Bytes + known;
    if (s.sequence_parallel) m.backward_extra += s.tokens * s.hidden * s.bytes;  // gathered input
    return;
  }
  m.output = s.tokens * kFp32Bytes;
  const bool framework = !s.own_modules();
  switch (s.loss) {
    case LossKernel::by_engine:  // loss_of() has decided
      return;
    case LossKernel::materialised:
      m.copies = logits * kFp32Bytes;  // softmax, whose gradient takes its place
      m.input_gradient = logits * s.bytes;
      if (framework) {  // log-softmax is kept; its input and both gradients are tensors of their
                        // own
        m.forward_extra = logits * kFp32Bytes;
        m.input_gradient = logits * kFp32Bytes;
        m.backward_extra = logits * kFp32Bytes;
      }
      return;
    case LossKernel::fused_fp32:
      m.copies = logits * kFp32Bytes;
      m.input_gradient = logits * kFp32Bytes;
      m.forward_extra = logits * kFp32Bytes;
      return;
    case LossKernel::fused:
      m.keeps_read[0] = true;  // the gradient takes the logits' place
      if (s.kernels == Kernels::compiled) m.input_gradient = logits * s.bytes;
      return;
    case LossKernel::chunked: {
      // As many chunks as the vocabulary is wider than the hidden state, a power of two of rows
      // each; the hidden state's gradient is made in forward and kept.
      const std::int64_t chunks = ceil_div(op.width, s.hidden);
      const auto rows = static_cast<std::int64_t>(
          std::bit_ceil(static_cast<std::uint64_t>(ceil_div(s.tokens, chunks))));
      m.forward_extra = rows * s.cut(op.width, op) * s.bytes;
      m.copies = s.tokens * s.hidden * s.bytes;
      return;
    }
  }
}

}  // namespace shardwise
