#include "planner/score/rows/row_model.h"

#include <fmt/format.h>

#include <utility>

#include "planner/model/build.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

// GPT-2's byte-pair vocabulary, padded as Megatron pads (--make-vocab-size-divisible-by 128).
// Source: Radford et al. 2019; NVIDIA/Megatron-LM:megatron/training/tokenizer.
constexpr std::int64_t kGpt2Vocabulary = 50257;
constexpr std::int64_t kMegatronVocabularyStep = 128;

void feed_forward(const RowModel& from, TransformerConfig& to, Notes& notes) {
  to.gated_mlp = from.gated_mlp.value_or(to.norm == NormKind::rmsnorm);
  if (!from.gated_mlp) {
    notes.assume(
        fmt::format("feed-forward is {}gated, as usual with its norm", to.gated_mlp ? "" : "not "));
  }
  to.activation = to.gated_mlp ? Activation::silu : Activation::gelu;
  if (from.ffn) {
    to.intermediate_size = *from.ffn;
    return;
  }
  const bool dense_layers =
      !from.moe || from.moe->first_dense_layers > 0 || from.moe->layer_freq > 1;
  if (!dense_layers) return;
  to.intermediate_size = 4 * to.hidden_size;
  if (to.gated_mlp) to.intermediate_size = round_up(8 * to.hidden_size / 3, 256);
  notes.assume(fmt::format("ffn {} from the hidden size", to.intermediate_size));
}

void experts(const RowMoe& moe, TransformerConfig& to) {
  MoeConfig config;
  config.num_experts = moe.experts;
  config.num_experts_per_tok = moe.topk;
  config.intermediate_size = moe.ffn;
  config.shared_intermediate_size = moe.shared_ffn;
  config.dense_layers =
      dense_layers_of(to.num_hidden_layers, moe.first_dense_layers, moe.layer_freq);
  if (to.intermediate_size == 0) to.intermediate_size = moe.ffn;
  to.moe = config;
}

void vocabulary(const Row& row, TransformerConfig& to, Notes& notes) {
  if (row.model.vocab) {
    to.vocab_size = *row.model.vocab;
    return;
  }
  if (to.position_embedding != PositionEmbedding::learned) {
    notes.refuse("vocabulary not stated");
    return;
  }
  to.vocab_size = round_up(kGpt2Vocabulary, kMegatronVocabularyStep * row.parallel.tp.value_or(1));
  notes.assume(fmt::format("vocabulary {}: GPT-2's, padded", to.vocab_size));
}

PositionEmbedding position_of(const RowModel& model, Notes& notes) {
  if (says(model.pos_emb, "learned")) return PositionEmbedding::learned;
  if (says(model.pos_emb, "alibi")) return PositionEmbedding::alibi;
  if (says(model.pos_emb, "rope")) return PositionEmbedding::rope;
  if (says(model.pos_emb, "none")) return PositionEmbedding::none;
  const bool learned = says(model.norm, "layer");
  notes.assume(learned ? "learned positions, as usual with layernorm" : "rotary positions");
  return learned ? PositionEmbedding::learned : PositionEmbedding::rope;
}

/// Biases of `config`, of products and of norms.
void set_biases(TransformerConfig& config, bool products, bool norms) {
  config.qkv_bias = products;
  config.attention_output_bias = products;
  config.mlp_bias = products && !config.gated_mlp;
  config.norm_bias = norms && config.norm == NormKind::layernorm;
}

/// Where a source states the exact count of parameters, which biases there are follows from it,
/// whatever else it says of them.
void match_count(const RowModel& from, TransformerConfig& to, Notes& notes) {
  if (!from.params_exact) return;
  const auto stated = static_cast<std::int64_t>(*from.params_exact);
  const auto counts = [&](const TransformerConfig& config) {
    const Result<ModelSpec> model = make_model(config, from.name);
    return model && model->parameter_count() == stated;
  };
  if (counts(to)) return;
  for (const auto& [products, norms] : {std::pair(true, true), std::pair(true, false),
                                        std::pair(false, true), std::pair(false, false)}) {
    TransformerConfig variant = to;
    set_biases(variant, products, norms);
    if (!counts(variant)) continue;
    to = variant;
    notes.assume(fmt::format("linear layers {} biases, norms {}: matches the stated {} parameters",
                             products ? "with" : "without", norms ? "with" : "without", stated));
    return;
  }
  notes.assume(fmt::format("not the stated {} parameters with any choice of biases", stated));
}

}  // namespace

std::optional<TransformerConfig> transformer_of(const Row& row, Notes& notes) {
  const RowModel& from = row.model;
  if (!from.layers || !from.hidden || !from.heads) {
    notes.refuse("architecture not stated (layers, hidden size or heads)");
    return std::nullopt;
  }
  if (!from.seq) {
    notes.refuse("sequence length not stated");
    return std::nullopt;
  }
  if (says(from.arch, "moe") && !from.moe) {
    notes.refuse("experts not stated");
    return std::nullopt;
  }
  TransformerConfig to;
  to.hidden_size = *from.hidden;
  to.num_hidden_layers = *from.layers;
  to.num_attention_heads = *from.heads;
  to.num_key_value_heads = from.kv_heads.value_or(*from.heads);
  to.head_dim = from.head_dim.value_or(0);
  to.max_position_embeddings = *from.seq;
  to.tie_word_embeddings = from.tied_embeddings.value_or(false);
  if (!from.tied_embeddings) notes.assume("embeddings not tied");

  to.norm = says(from.norm, "layer") ? NormKind::layernorm : NormKind::rmsnorm;
  const bool bias = from.bias.value_or(to.norm == NormKind::layernorm);
  to.position_embedding = position_of(from, notes);
  feed_forward(from, to, notes);
  // Gated feed-forwards of published models have no biases, whatever their attention has
  // (InternLM, Qwen2).
  set_biases(to, bias, !says(from.norm, "no bias"));
  to.parallel_residual = row.flag_on("parallel_block");
  vocabulary(row, to, notes);
  if (from.moe) experts(*from.moe, to);
  if (from.mla) {
    to.mla = MlaConfig{from.mla->q_lora_rank, from.mla->kv_lora_rank, from.mla->qk_head_dim,
                       from.mla->qk_rope_dim, from.mla->v_head_dim};
  }
  to.num_mtp_layers = from.mtp_layers;
  if (!notes.refused.empty()) return std::nullopt;
  match_count(from, to, notes);
  return to;
}

}  // namespace shardwise
