#include "planner/model/block_parts.h"

namespace shardwise {
namespace {

void add_core(LayerBuilder& layer, const TransformerConfig& config, const AttentionSite& site,
              std::int64_t kv_heads, std::int64_t qk_head_dim, std::int64_t v_head_dim) {
  const std::int64_t heads = config.num_attention_heads;
  OperationSpec& core =
      layer.operation(site.op + "core", OpKind::attention, heads * v_head_dim, TpSplit::heads);
  core.heads = heads;
  core.kv_heads = kv_heads;
  core.qk_head_dim = qk_head_dim;
  core.v_head_dim = v_head_dim;
  core.window = site.window;
  core.causal = site.causal;
  core.cross = site.cross;
}

void add_tables(LayerBuilder& layer, const TransformerConfig& config, const AttentionNames& names,
                const AttentionSite& site) {
  if (config.attention_sinks) {
    layer.parameter(names.sinks, {config.num_attention_heads}, TpSplit::heads, 0);
  }
  if (site.owns_table) {
    layer.parameter(names.relative_bias + ".weight",
                    {config.relative_attention_num_buckets, config.num_attention_heads},
                    TpSplit::heads, 1);
  }
}

/// Queries and keys normed head by head (Qwen3, Gemma 3).
void add_qk_norms(LayerBuilder& layer, const TransformerConfig& config, const AttentionNames& names,
                  const std::string& op) {
  const auto add = [&](const std::string& norm_op, const std::string& module, std::int64_t heads) {
    layer.parameter(module + ".weight", {config.head_dim});
    OperationSpec& norm =
        layer.operation(op + norm_op, OpKind::norm, heads * config.head_dim, TpSplit::heads);
    norm.rms = config.norm == NormKind::rmsnorm;
    norm.fp32 = config.fp32_gain;
  };
  add("q_norm", names.q_norm, config.num_attention_heads);
  add("k_norm", names.k_norm, config.num_key_value_heads);
}

void add_latent_attention(LayerBuilder& layer, const TransformerConfig& config,
                          const MlaConfig& mla, const AttentionNames& names,
                          const AttentionSite& site) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t heads = config.num_attention_heads;
  const std::int64_t qk_head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  const bool bias = config.qkv_bias;

  if (mla.q_lora_rank > 0) {
    layer.linear({.op = site.op + "q_a_proj",
                  .module = names.q_a,
                  .n = mla.q_lora_rank,
                  .k = hidden,
                  .bias = bias});
    add_norm(layer, config, site.op + "q_a_norm", names.q_a_norm, mla.q_lora_rank);
    layer.linear({.op = site.op + "q_b_proj",
                  .module = names.q_b,
                  .n = heads * qk_head_dim,
                  .k = mla.q_lora_rank,
                  .tp = TpSplit::column});
  } else {
    layer.linear({.op = site.op + "q_proj",
                  .module = names.q,
                  .n = heads * qk_head_dim,
                  .k = hidden,
                  .tp = TpSplit::column});
  }
  layer.linear({.op = site.op + "kv_a_proj",
                .module = names.kv_a,
                .n = mla.kv_lora_rank + mla.qk_rope_head_dim,
                .k = hidden,
                .bias = bias});
  add_norm(layer, config, site.op + "kv_a_norm", names.kv_a_norm, mla.kv_lora_rank);
  layer.linear({.op = site.op + "kv_b_proj",
                .module = names.kv_b,
                .n = heads * (mla.qk_nope_head_dim + mla.v_head_dim),
                .k = mla.kv_lora_rank,
                .tp = TpSplit::column});
  // Each query head has a rotated part; the keys share one.
  layer.operation(site.op + "rope", OpKind::rope, (heads + 1) * mla.qk_rope_head_dim,
                  TpSplit::heads);
  add_tables(layer, config, names, site);
  add_core(layer, config, site, heads, qk_head_dim, mla.v_head_dim);
  layer.linear({.op = site.op + "o_proj",
                .module = names.o,
                .n = hidden,
                .k = heads * mla.v_head_dim,
                .tp = TpSplit::row,
                .bias = config.attention_output_bias});
}

}  // namespace

void add_attention(LayerBuilder& layer, const TransformerConfig& config,
                   const AttentionNames& names, const AttentionSite& site) {
  if (config.mla) {
    add_latent_attention(layer, config, *config.mla, names, site);
    return;
  }
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q_width = config.num_attention_heads * config.head_dim;
  const std::int64_t kv_width = config.num_key_value_heads * config.head_dim;
  const auto project = [&](const char* op, const std::string& module,
                           std::int64_t n) -> OperationSpec& {
    return layer.linear({.op = site.op + op,
                         .module = module,
                         .n = n,
                         .k = hidden,
                         .tp = TpSplit::column,
                         .bias = config.qkv_bias});
  };
  if (config.fused_qkv) {
    project("qkv_proj", names.qkv, q_width + 2 * kv_width);
  } else {
    project("q_proj", names.q, q_width);
    project("k_proj", names.k, kv_width).cross = site.cross;
    project("v_proj", names.v, kv_width).cross = site.cross;
  }
  if (config.qk_norm) add_qk_norms(layer, config, names, site.op);
  if (config.position_embedding == PositionEmbedding::rope && !site.cross) {
    layer.operation(site.op + "rope", OpKind::rope,
                    (config.num_attention_heads + config.num_key_value_heads) * config.rotary_dim,
                    TpSplit::heads);
  }
  add_tables(layer, config, names, site);
  add_core(layer, config, site, config.num_key_value_heads, config.head_dim, config.head_dim);
  layer.linear({.op = site.op + "o_proj",
                .module = names.o,
                .n = hidden,
                .k = q_width,
                .tp = TpSplit::row,
                .bias = config.attention_output_bias});
}

}  // namespace shardwise
