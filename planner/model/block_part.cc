#include "planner/model/block_parts.h"

namespace shardwise {

void add_norm(LayerBuilder& layer, const TransformerConfig& config, const std::string& op,
              const std::string& module, std::int64_t width) {
  OperationSpec& norm = layer.operation(op, OpKind::norm, width);
  norm.rms = config.norm == NormKind::rmsnorm;
  norm.fp32 = config.fp32_gain;
  if (!config.norm_weight) return;
  layer.parameter(module + ".weight", {width});
  if (config.norm_bias) layer.parameter(module + ".bias", {width});
}

void add_block(LayerBuilder& layer, const TransformerConfig& config, const BlockNames& names,
               const BlockSite& site) {
  const std::int64_t hidden = config.hidden_size;
  const bool before = config.norm_placement != NormPlacement::after;
  const bool inside = config.norm_placement == NormPlacement::both;
  const bool after = config.norm_placement == NormPlacement::after;
  layer.transpose_weights(config.transposed_linear);

  if (before) add_norm(layer, config, "attention_norm", names.attention_norm, hidden);
  add_attention(layer, config, names.attention, site.attention);
  if (inside) {
    add_norm(layer, config, "attention_output_norm", names.attention_output_norm, hidden);
  }
  if (!config.parallel_residual) {
    layer.operation("attention_residual", OpKind::residual, hidden);
    if (after)
      add_norm(layer, config, "attention_output_norm", names.attention_output_norm, hidden);
  }

  if (site.attends_to_encoder) {
    add_norm(layer, config, "cross_attention_norm", names.cross_attention_norm, hidden);
    add_attention(layer, config, names.cross_attention,
                  {.op = "cross_attn.", .causal = false, .cross = true});
    layer.operation("cross_attention_residual", OpKind::residual, hidden);
  }

  if (before && !config.shared_parallel_norm) {
    add_norm(layer, config, "mlp_norm", names.mlp_norm, hidden);
  }
  if (site.experts != nullptr) {
    add_experts(layer, config, *site.experts, names);
  } else {
    add_mlp(layer, config, names);
  }
  if (inside) add_norm(layer, config, "mlp_output_norm", names.mlp_output_norm, hidden);
  if (config.parallel_residual) layer.operation("attention_residual", OpKind::residual, hidden);
  layer.operation("mlp_residual", OpKind::residual, hidden);
  if (after) add_norm(layer, config, "mlp_output_norm", names.mlp_output_norm, hidden);
  layer.transpose_weights(false);
}

}  // namespace shardwise
