#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/facts/plan_facts.h"
#include "planner/export/facts/selective_operations.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

const OperationSpec* find(const LayerSpec& layer, std::string_view name) {
  const auto at = std::ranges::find_if(
      layer.operations, [&](const OperationSpec& each) { return each.name == name; });
  return at == layer.operations.end() ? nullptr : &*at;
}

/// The blocks of the model's depth, in order.
std::vector<const LayerSpec*> blocks_of(const ModelSpec& model) {
  std::vector<const LayerSpec*> blocks;
  for (const int kind : model.layers) {
    const LayerSpec& layer = model.kinds[static_cast<std::size_t>(kind)];
    if (is_main_block(layer.role)) blocks.push_back(&layer);
  }
  return blocks;
}

bool has_experts(const LayerSpec& block) { return find(block, "mlp.router") != nullptr; }

/// "([0]*3+[1]*58)": which layers have experts, as Python writes lists.
std::string expert_layers(const std::vector<const LayerSpec*>& blocks) {
  std::string text = "(";
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && has_experts(*blocks[end]) == has_experts(*blocks[i])) ++end;
    text += fmt::format("{}[{}]*{}", i == 0 ? "" : "+", has_experts(*blocks[i]) ? 1 : 0, end - i);
    i = end;
  }
  return text + ")";
}

/// The families of which planner/model reads ModelNumerics; of others they are as they stand.
constexpr std::array<std::string_view, 11> kWithNumerics = {
    "gpt2",  "llama",     "mistral",     "mixtral",     "qwen2", "qwen2_moe",
    "qwen3", "qwen3_moe", "deepseek_v2", "deepseek_v3", "phi3"};

/// Writes facts of one model.
class Facts {
 public:
  void set(const char* name, std::int64_t value) { values_[key(name)] = std::to_string(value); }
  void set(const char* name, std::string_view value) { values_[key(name)] = std::string(value); }
  void flag(const char* name, bool value) { set(name, std::string_view(value ? "true" : "false")); }
  void number(const char* name, double value) { values_[key(name)] = fmt::format("{}", value); }
  Values take() { return std::move(values_); }

 private:
  static std::string key(const char* name) { return std::string("model.") + name; }
  Values values_;
};

void add_attention(const ModelSpec& model, const LayerSpec& block, Facts& facts) {
  const OperationSpec* core = find(block, "self_attn.core");
  const OperationSpec* rope = find(block, "self_attn.rope");
  const OperationSpec* latent = find(block, "self_attn.kv_a_proj");
  const auto biased = [&](std::string_view name) {
    const OperationSpec* gemm = find(block, name);
    return gemm != nullptr && gemm->bias;
  };
  facts.flag("qkv_bias", biased("self_attn.q_proj") || biased("self_attn.qkv_proj"));
  facts.flag("attention_output_bias", biased("self_attn.o_proj"));
  // Of latent attention: the norms of what queries, keys and values are made of.
  facts.flag("qk_norm", find(block, "self_attn.q_norm") != nullptr ||
                            find(block, "self_attn.kv_a_norm") != nullptr);
  facts.flag("latent_attention", latent != nullptr);
  facts.flag("grouped_queries",
             latent == nullptr && model.num_key_value_heads != model.num_attention_heads);
  if (latent != nullptr && core != nullptr && rope != nullptr) {
    const std::int64_t rotated = rope->width / (model.num_attention_heads + 1);
    const OperationSpec* queries = find(block, "self_attn.q_a_proj");
    if (queries != nullptr) facts.set("q_lora_rank", queries->width);
    facts.set("kv_lora_rank", latent->width - rotated);
    facts.set("qk_nope_head_dim", core->qk_head_dim - rotated);
    facts.set("qk_rope_head_dim", rotated);
    facts.set("v_head_dim", core->v_head_dim);
  } else if (rope != nullptr && model.head_dim > 0) {
    const std::int64_t heads = model.num_attention_heads + model.num_key_value_heads;
    facts.number("rotary_share",
                 static_cast<double>(rope->width) / static_cast<double>(heads * model.head_dim));
  }
}

void add_feed_forward(const ModelSpec& model, const std::vector<const LayerSpec*>& blocks,
                      Facts& facts) {
  const LayerSpec& block = *blocks.back();
  const auto gated = [](const OperationSpec& each) {
    return each.kind == OpKind::activation && each.gated;
  };
  facts.flag("gated_mlp", std::ranges::any_of(block.operations, gated));
  const OperationSpec* down = find(block, "mlp.down_proj");
  facts.flag("mlp_bias", down != nullptr && down->bias);
  facts.set("num_experts", model.num_experts);
  if (model.num_experts == 0) return;
  facts.set("num_experts_per_tok", model.num_experts_per_tok);
  facts.set("moe_intermediate_size", model.moe_intermediate_size);
  facts.set("expert_layers", expert_layers(blocks));
  const RouterNumerics& router = model.router;
  // Softmax of the chosen logits divides by their sum, softmax of all does not.
  facts.flag("router_before_choice", !router.sigmoid && !router.norm_topk_prob);
  facts.flag("router_normalizes", router.norm_topk_prob);
  facts.set("router_score", std::string_view(router.sigmoid ? "sigmoid" : "softmax"));
  facts.flag("router_bias", std::ranges::any_of(block.parameters, [](const ParameterSpec& each) {
               return each.name.ends_with("correction_bias");
             }));
  facts.set("router_groups", router.n_group);
  facts.set("router_group_topk", router.topk_group);
  facts.number("router_scaling", router.routed_scaling_factor);
  const OperationSpec* shared = find(block, "mlp.shared.down_proj");
  if (shared != nullptr) facts.set("shared_intermediate_size", shared->k);
  facts.flag("shared_expert_gate", find(block, "mlp.shared_gate_proj") != nullptr);
}

/// "4095,0": the tokens before and behind a token that all blocks attend to beside itself. "none"
/// where all attend to all, "some" where the blocks differ.
std::string window_of(const std::vector<const LayerSpec*>& blocks) {
  std::int64_t widest = 0;
  std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
  for (const LayerSpec* each : blocks) {
    const OperationSpec* core = find(*each, "self_attn.core");
    const std::int64_t window = core == nullptr ? 0 : core->window;
    widest = std::max(widest, window);
    narrowest = std::min(narrowest, window);
  }
  if (widest == 0) return "none";
  return widest == narrowest ? fmt::format("{},0", widest - 1) : "some";
}

/// What lies around the blocks, and how they are put together.
void add_frame(const ModelSpec& model, const std::vector<const LayerSpec*>& blocks, Facts& facts) {
  const LayerSpec& block = *blocks.back();
  const OperationSpec* norm = find(block, "attention_norm");
  const bool encoders = std::ranges::any_of(
      blocks, [](const LayerSpec* each) { return each->role == LayerRole::encoder_block; });
  const std::string window = window_of(blocks);
  const auto order = [&](std::string_view first, std::string_view second) {
    const OperationSpec* a = find(block, first);
    const OperationSpec* b = find(block, second);
    return a != nullptr && b != nullptr && a < b;
  };
  const bool usual = norm != nullptr && !encoders &&
                     find(block, "attention_output_norm") == nullptr &&
                     order("attention_residual", "mlp_norm");
  facts.set("window", std::string_view(window));
  facts.set("block", std::string_view(usual ? "llama" : "other"));
  facts.set("norm", std::string_view(norm != nullptr && norm->rms ? "rmsnorm" : "layernorm"));
  std::int64_t further = 0;
  bool learned = false;
  bool capped = false;
  for (const int kind : model.layers) {
    const LayerSpec& layer = model.kinds[static_cast<std::size_t>(kind)];
    further += layer.role == LayerRole::mtp ? 1 : 0;
    learned = learned || find(layer, "position_embedding") != nullptr;
    capped = capped || find(layer, "logit_softcap") != nullptr;
  }
  facts.set("num_mtp_layers", further);
  facts.flag("logit_softcap", capped);
  const bool rope = find(block, "self_attn.rope") != nullptr;
  const bool slopes = model.model_type == "bloom" || model.model_type == "mpt";
  facts.set("positions_by", std::string_view(rope      ? "rope"
                                             : learned ? "learned"
                                             : slopes  ? "alibi"
                                                       : "none"));
}

}  // namespace

Values model_facts(const ModelSpec& model) {
  Facts facts;
  facts.set("type", std::string_view(model.model_type));
  facts.set("num_hidden_layers", model.num_hidden_layers);
  facts.set("hidden_size", model.hidden_size);
  facts.set("num_attention_heads", model.num_attention_heads);
  facts.set("num_key_value_heads", model.num_key_value_heads);
  facts.set("head_dim", model.head_dim);
  facts.set("intermediate_size", model.intermediate_size);
  facts.set("vocab_size", model.vocab_size);
  facts.flag("tie_word_embeddings", model.tie_word_embeddings);
  facts.set("selective_operations",
            std::string_view(fmt::format("{}", fmt::join(selective_operations(model), ","))));
  const bool numerics = std::ranges::find(kWithNumerics, model.model_type) != kWithNumerics.end();
  facts.flag("numerics_known", numerics);
  if (numerics) {
    facts.number("norm_epsilon", model.numerics.norm_epsilon);
    facts.set("activation", name_of(model.numerics.activation));
    facts.number("rope_theta", model.numerics.rope_theta);
    facts.set("rope_scaling", name_of(model.numerics.rope_scaling));
    facts.number("rope_factor", model.numerics.rope_factor);
  }
  const std::vector<const LayerSpec*> blocks = blocks_of(model);
  if (blocks.empty()) return facts.take();
  add_attention(model, *blocks.back(), facts);
  add_feed_forward(model, blocks, facts);
  add_frame(model, blocks, facts);
  return facts.take();
}

}  // namespace shardwise
