#include "planner/model/block_parts.h"

namespace shardwise {
namespace {

/// Up, activation and down of one feed-forward; `experts` many when the layer is routing.
struct FeedForward {
  std::string op;      // before the operations' names
  std::string prefix;  // before the modules' names
  MlpNames names;
  std::int64_t intermediate_size = 0;
};

void add_feed_forward(LayerBuilder& layer, const TransformerConfig& config,
                      const FeedForward& part) {
  const std::int64_t hidden = config.hidden_size;
  const auto up = [&](const char* op, const std::string& module, std::int64_t n) {
    layer.linear({.op = part.op + op,
                  .module = part.prefix + module,
                  .n = n,
                  .k = hidden,
                  .tp = TpSplit::column,
                  .bias = config.mlp_bias});
  };
  if (config.gated_mlp && config.fused_gate_up) {
    up("gate_up_proj", part.names.gate_up, 2 * part.intermediate_size);
  } else {
    if (config.gated_mlp) up("gate_proj", part.names.gate, part.intermediate_size);
    up("up_proj", part.names.up, part.intermediate_size);
  }
  layer
      .operation(part.op + "activation", OpKind::activation, part.intermediate_size,
                 TpSplit::column)
      .gated = config.gated_mlp;
  layer.linear({.op = part.op + "down_proj",
                .module = part.prefix + part.names.down,
                .n = hidden,
                .k = part.intermediate_size,
                .tp = TpSplit::row,
                .bias = config.mlp_bias});
}

/// All experts in one tensor a matrix, stored [experts, in, out], gate and up interleaved.
void add_stacked_experts(LayerBuilder& layer, const TransformerConfig& config, const MoeConfig& moe,
                         const BlockNames& names) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t up_width = (config.gated_mlp ? 2 : 1) * moe.intermediate_size;
  const auto multiply = [&](const char* op, std::int64_t n, std::int64_t k, TpSplit tp) {
    OperationSpec& gemm = layer.operation(op, OpKind::gemm, n, tp);
    gemm.k = k;
    gemm.bias = config.mlp_bias;
  };
  const std::string up = names.experts_prefix + names.experts.gate_up;
  const std::string down = names.experts_prefix + names.experts.down;

  multiply("mlp.experts.gate_up_proj", up_width, hidden, TpSplit::column);
  layer.parameter(up, {moe.num_experts, hidden, up_width}, TpSplit::column, 2);
  if (config.mlp_bias)
    layer.parameter(up + "_bias", {moe.num_experts, up_width}, TpSplit::column, 1);
  layer
      .operation("mlp.experts.activation", OpKind::activation, moe.intermediate_size,
                 TpSplit::column)
      .gated = config.gated_mlp;
  multiply("mlp.experts.down_proj", hidden, moe.intermediate_size, TpSplit::row);
  layer.parameter(down, {moe.num_experts, moe.intermediate_size, hidden}, TpSplit::row, 1);
  if (config.mlp_bias) layer.parameter(down + "_bias", {moe.num_experts, hidden});
}

}  // namespace

void add_mlp(LayerBuilder& layer, const TransformerConfig& config, const BlockNames& names) {
  add_feed_forward(layer, config,
                   {.op = "mlp.",
                    .prefix = names.mlp_prefix,
                    .names = names.mlp,
                    .intermediate_size = config.intermediate_size});
}

void add_experts(LayerBuilder& layer, const TransformerConfig& config, const MoeConfig& moe,
                 const BlockNames& names) {
  layer.linear({.op = "mlp.router_proj",
                .module = names.router,
                .n = moe.num_experts,
                .k = config.hidden_size,
                .bias = moe.router_bias});
  if (moe.correction_bias) {
    layer.parameter(names.correction_bias, {moe.num_experts}, TpSplit::none, -1,
                    /*trainable=*/false);
  }
  OperationSpec& router = layer.operation("mlp.router", OpKind::router, moe.num_experts_per_tok);
  router.k = moe.num_experts;
  router.fp32 = true;

  layer.route_to(moe.num_experts);
  layer.operation("mlp.dispatch", OpKind::dispatch, config.hidden_size);
  if (moe.stacked_experts) {
    add_stacked_experts(layer, config, moe, names);
  } else {
    add_feed_forward(layer, config,
                     {.op = "mlp.experts.",
                      .prefix = names.experts_prefix,
                      .names = names.experts,
                      .intermediate_size = moe.intermediate_size});
  }
  layer.operation("mlp.combine", OpKind::combine, config.hidden_size);
  layer.route_to(0);

  if (moe.shared_intermediate_size == 0) return;
  add_feed_forward(layer, config,
                   {.op = "mlp.shared.",
                    .prefix = names.shared_experts_prefix,
                    .names = names.mlp,
                    .intermediate_size = moe.shared_intermediate_size});
  if (moe.shared_expert_gate) {
    layer.linear({.op = "mlp.shared_gate_proj",
                  .module = names.shared_expert_gate,
                  .n = 1,
                  .k = config.hidden_size});
  }
  layer.operation("mlp.shared_residual", OpKind::residual, config.hidden_size);
}

}  // namespace shardwise
