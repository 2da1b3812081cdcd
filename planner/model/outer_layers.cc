#include "planner/model/outer_layers.h"

#include "planner/model/block_parts.h"

namespace shardwise {
namespace {

void add_outer_norm(LayerBuilder& layer, const TransformerConfig& config, const std::string& op,
                    const std::string& module) {
  add_norm(layer, config, op, module, config.hidden_size);
}

void add_table(LayerBuilder& layer, const std::string& op, const std::string& module,
               std::int64_t rows, std::int64_t width, TpSplit tp) {
  layer.operation(op, OpKind::embedding, width, tp).k = rows;
  layer.parameter(module + ".weight", {rows, width}, tp, tp == TpSplit::vocab ? 0 : -1);
}

/// A projection to the vocabulary and the loss; `module` empty when another layer owns the matrix.
void add_prediction(LayerBuilder& layer, const TransformerConfig& config, const std::string& module,
                    const std::string& op_prefix, bool bias = false) {
  layer
      .linear({.op = op_prefix + "lm_head",
               .module = module,
               .n = config.vocab_size,
               .k = config.embedding_size,
               .tp = TpSplit::vocab})
      .bias = bias;
  if (config.logit_softcap) {
    layer.operation(op_prefix + "logit_softcap", OpKind::activation, config.vocab_size,
                    TpSplit::vocab);
  }
  layer.operation(op_prefix + "loss", OpKind::loss, config.vocab_size, TpSplit::vocab);
}

/// BERT's head: a dense layer with activation and norm, then the tied table with a bias of its own.
/// Source: transformers 4.57.6, models/bert/modeling_bert.py, BertPreTrainingHeads.
void add_pretraining_heads(LayerBuilder& layer, const TransformerConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::string& predictions = config.names.lm_head;
  layer.linear({.op = "transform",
                .module = predictions + ".transform.dense",
                .n = hidden,
                .k = hidden,
                .bias = true});
  layer.operation("transform_activation", OpKind::activation, hidden);
  add_outer_norm(layer, config, "transform_norm", predictions + ".transform.LayerNorm");
  add_prediction(layer, config, config.tie_word_embeddings ? "" : predictions + ".decoder", "",
                 /*bias=*/true);
  layer.parameter(predictions + ".bias", {config.vocab_size}, TpSplit::vocab, 0);
  layer.parameter("bert.pooler.dense.weight", {hidden, hidden});
  layer.parameter("bert.pooler.dense.bias", {hidden});
  layer.parameter("cls.seq_relationship.weight", {2, hidden});
  layer.parameter("cls.seq_relationship.bias", {2});
}

}  // namespace

LayerSpec embedding_layer(const TransformerConfig& config) {
  const CheckpointNames& names = config.names;
  LayerBuilder layer("embedding", LayerRole::embedding, "");
  add_table(layer, "token_embedding", names.token_embedding, config.vocab_size,
            config.embedding_size, TpSplit::vocab);
  if (config.embedding_size != config.hidden_size) {
    layer.linear({.op = "project_in",
                  .module = names.project_in,
                  .n = config.hidden_size,
                  .k = config.embedding_size});
  }
  if (config.type_vocab_size > 0) {
    add_table(layer, "token_type_embedding", names.token_type_embedding, config.type_vocab_size,
              config.hidden_size, TpSplit::none);
    layer.operation("token_type_add", OpKind::residual, config.hidden_size);
  }
  if (config.position_embedding == PositionEmbedding::learned) {
    add_table(layer, "position_embedding", names.position_embedding, config.position_table_rows,
              config.hidden_size, TpSplit::none);
    layer.operation("position_add", OpKind::residual, config.hidden_size);
  }
  if (config.embedding_norm) add_outer_norm(layer, config, "embedding_norm", names.embedding_norm);
  return layer.take();
}

LayerSpec head_layer(const TransformerConfig& config) {
  const CheckpointNames& names = config.names;
  LayerBuilder layer("head", LayerRole::head, "");
  if (config.final_norm) add_outer_norm(layer, config, "final_norm", names.final_norm);
  if (config.embedding_size != config.hidden_size) {
    layer.linear({.op = "project_out",
                  .module = names.project_out,
                  .n = config.embedding_size,
                  .k = config.hidden_size});
  }
  if (config.pretraining_heads) {
    add_pretraining_heads(layer, config);
  } else {
    add_prediction(layer, config, config.tie_word_embeddings ? "" : names.lm_head, "");
  }
  return layer.take();
}

LayerSpec mtp_layer(const TransformerConfig& config) {
  const BlockNames& names = config.names.block;
  const std::int64_t hidden = config.hidden_size;
  LayerBuilder layer("mtp", LayerRole::mtp, names.prefix);
  layer.operation("mtp_token_embedding", OpKind::embedding, hidden, TpSplit::vocab).k =
      config.vocab_size;
  add_norm(layer, config, "mtp_embedding_norm", "enorm", hidden);
  add_norm(layer, config, "mtp_hidden_norm", "hnorm", hidden);
  layer.linear(
      {.op = "mtp_proj", .module = "eh_proj", .n = hidden, .k = 2 * hidden, .tp = TpSplit::column});
  add_block(
      layer, config, names,
      {.attention = {.causal = config.causal}, .experts = config.moe ? &*config.moe : nullptr});
  add_norm(layer, config, "mtp_final_norm", "shared_head.norm", hidden);
  add_prediction(layer, config, "", "mtp_");
  return layer.take();
}

void add_encoder_final_norm(LayerBuilder& layer, const TransformerConfig& config) {
  layer.name_from("");
  add_outer_norm(layer, config, "encoder_final_norm", config.names.encoder_final_norm);
}

}  // namespace shardwise
