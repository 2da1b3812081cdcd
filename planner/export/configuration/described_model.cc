#include "planner/export/configuration/described_model.h"

#include <fmt/format.h>

#include <cstdint>

#include "planner/export/framework/setting_values.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

/// Facts of a model by the settings that state them, or by their defaults.
class StatedFacts {
 public:
  StatedFacts(const Framework& framework, const Settings& settings) {
    for (const SettingSpec& spec : framework.settings) {
      if (!spec.field.starts_with("model.")) continue;
      const auto at = settings.values.find(spec.name);
      const bool is_switch = spec.kind == SettingKind::on;
      if (at == settings.values.end() && !is_switch) continue;
      const std::optional<std::string> value =
          ours(spec, at == settings.values.end() ? "false" : at->second);
      if (value) facts_.emplace(spec.field, *value);
    }
  }

  std::optional<std::int64_t> count(const std::string& name) const {
    const std::optional<double> value = number(name);
    if (!value || *value < 1) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  }
  std::optional<double> number(const std::string& name) const {
    const auto at = facts_.find("model." + name);
    return at == facts_.end() ? std::nullopt : parse_number(at->second);
  }
  bool is(const std::string& name, const std::string& value = "true") const {
    const auto at = facts_.find("model." + name);
    return at != facts_.end() && at->second == value;
  }

 private:
  Values facts_;
};

/// Writes sizes. \returns whether all of them are there
class Description {
 public:
  explicit Description(const StatedFacts& facts) : facts_(facts) {
    json_.begin_object();
    json_.member("schema", "shardwise.model/1");
    json_.member("model_type", "transformer");
  }

  void size(const char* key, std::optional<std::int64_t> value) {
    whole_ = whole_ && value.has_value();
    if (value) json_.member(key, *value);
  }
  void size(const char* key) { size(key, facts_.count(key)); }
  void flag(const char* key, bool value) { json_.member(key, value); }
  void text(const char* key, const char* value) { json_.member(key, value); }
  std::optional<std::string> take() {
    json_.end_object();
    return whole_ ? std::optional(json_.text()) : std::nullopt;
  }

 private:
  const StatedFacts& facts_;
  JsonWriter json_;
  bool whole_ = true;
};

/// As Megatron-LM computes it where it is not stated.
std::int64_t feed_forward(const StatedFacts& facts, std::int64_t hidden) {
  if (const auto stated = facts.count("intermediate_size")) return *stated;
  return facts.is("gated_mlp") ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
}

void describe_attention(const StatedFacts& facts, std::int64_t hidden, Description& made) {
  const std::int64_t heads = facts.count("num_attention_heads").value_or(1);
  if (facts.is("latent_attention")) {
    if (const auto rank = facts.count("q_lora_rank")) made.size("q_lora_rank", rank);
    for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
      made.size(key);
    }
  } else {
    const std::int64_t width = facts.count("head_dim").value_or(hidden / heads);
    made.size("num_key_value_heads",
              facts.is("grouped_queries") ? facts.count("num_key_value_heads") : heads);
    made.size("head_dim", width);
    const double rotated = facts.number("rotary_share").value_or(1) * static_cast<double>(width);
    if (facts.is("positions_by", "rope")) {
      made.size("rotary_dim", static_cast<std::int64_t>(rotated));
    }
    made.flag("qk_norm", facts.is("qk_norm"));
  }
  made.text("position_embedding", facts.is("positions_by", "rope")   ? "rope"
                                  : facts.is("positions_by", "none") ? "none"
                                                                     : "learned");
}

void describe_experts(const StatedFacts& facts, std::int64_t width, Description& made) {
  if (!facts.count("num_experts")) return;
  made.size("num_experts");
  made.size("num_experts_per_tok");
  made.size("moe_intermediate_size", facts.count("moe_intermediate_size").value_or(width));
  if (const auto shared = facts.count("shared_intermediate_size")) {
    made.size("shared_intermediate_size", shared);
  }
  made.size("moe_layer_frequency", facts.count("expert_layers"));
}

}  // namespace

std::optional<std::string> described_model(const Framework& framework, const Settings& settings) {
  const StatedFacts facts(framework, settings);
  const std::optional<std::int64_t> hidden = facts.count("hidden_size");
  if (!hidden) return std::nullopt;
  Description made(facts);
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads"}) {
    made.size(key);
  }
  made.size("vocab_size");
  made.size("max_position_embeddings", facts.count("positions"));
  const std::int64_t width = feed_forward(facts, *hidden);
  made.size("intermediate_size", width);
  made.flag("tie_word_embeddings", facts.is("tie_word_embeddings"));
  const bool layernorm = facts.is("norm", "layernorm");
  made.text("norm", layernorm ? "layernorm" : "rmsnorm");
  const bool bias = facts.is("mlp_bias");
  made.flag("mlp_bias", bias);
  made.flag("attention_output_bias", bias);
  made.flag("qkv_bias", bias || facts.is("qkv_bias"));
  made.flag("norm_bias", layernorm);
  made.flag("gated_mlp", facts.is("gated_mlp"));
  made.text("activation", facts.is("gated_mlp") ? "silu" : "gelu");
  describe_attention(facts, *hidden, made);
  describe_experts(facts, width, made);
  if (const auto further = facts.count("num_mtp_layers")) made.size("num_mtp_layers", further);
  return made.take();
}

}  // namespace shardwise
