#include "executor/weights/config_json.h"

#include <algorithm>
#include <vector>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

const char* architecture_of(const std::string& model_type) {
  if (model_type == "gpt2") return "GPT2LMHeadModel";
  if (model_type == "llama") return "LlamaForCausalLM";
  if (model_type == "mistral") return "MistralForCausalLM";
  if (model_type == "qwen2") return "Qwen2ForCausalLM";
  if (model_type == "qwen3") return "Qwen3ForCausalLM";
  SHARDWISE_CHECK(false, model_type);
}

const char* activation_name(ActivationFunction activation) {
  switch (activation) {
    case ActivationFunction::silu:
      return "silu";
    case ActivationFunction::relu:
      return "relu";
    case ActivationFunction::gelu_erf:
      return "gelu";
    case ActivationFunction::gelu_tanh:
    case ActivationFunction::gelu_new:
      return "gelu_new";
    case ActivationFunction::other:
      break;
  }
  SHARDWISE_CHECK(false, "an activation that runs");
}

bool has_parameter(const ModelSpec& model, std::string_view end) {
  return std::ranges::any_of(model.kinds, [&](const LayerSpec& kind) {
    return std::ranges::any_of(kind.parameters,
                               [&](const ParameterSpec& p) { return p.name.ends_with(end); });
  });
}

/// Which blocks see a window of the sequence only.
struct Windows {
  std::int64_t tokens = 0;   // 0: none does
  std::int64_t first = 0;    // the first that does
  std::vector<bool> slides;  // of each block
  bool all_after_first() const {
    return std::all_of(slides.begin() + first, slides.end(), [](bool each) { return each; });
  }
};
Windows windows_of(const ModelSpec& model) {
  Windows windows;
  for (const int kind : model.layers) {
    const LayerSpec& layer = model.kinds[static_cast<std::size_t>(kind)];
    if (layer.role != LayerRole::block) continue;
    const auto window = std::ranges::find_if(layer.operations, [](const OperationSpec& op) {
      return op.kind == OpKind::attention && op.window > 0;
    });
    const bool slides = window != layer.operations.end();
    if (slides && windows.tokens == 0) {
      windows.tokens = window->window;
      windows.first = std::ssize(windows.slides);
    }
    windows.slides.push_back(slides);
  }
  return windows;
}

void write_gpt2(JsonWriter& json, const ModelSpec& model) {
  json.member("n_embd", model.hidden_size);
  json.member("n_inner", model.intermediate_size);
  json.member("n_layer", model.num_hidden_layers);
  json.member("n_head", model.num_attention_heads);
  json.member("n_positions", model.max_position_embeddings);
  json.member("activation_function", activation_name(model.numerics.activation));
  json.member("layer_norm_epsilon", model.numerics.norm_epsilon);
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) json.member(dropout, 0.0);
}

void write_rope(JsonWriter& json, const ModelNumerics& n) {
  json.member("rope_theta", n.rope_theta);
  if (n.rope_scaling == RopeScaling::none) return;
  json.begin_object("rope_scaling");
  json.member("rope_type", n.rope_scaling == RopeScaling::linear ? "linear" : "llama3");
  json.member("factor", n.rope_factor);
  if (n.rope_scaling == RopeScaling::llama3) {
    json.member("low_freq_factor", n.rope_low_freq_factor);
    json.member("high_freq_factor", n.rope_high_freq_factor);
    json.member("original_max_position_embeddings", n.rope_original_max_position_embeddings);
  }
  json.end_object();
}

void write_windows(JsonWriter& json, const ModelSpec& model) {
  const Windows windows = windows_of(model);
  if (model.model_type == "mistral") {
    if (windows.tokens > 0) {
      json.member("sliding_window", windows.tokens);
    } else {
      json.null_member("sliding_window");
    }
    return;
  }
  json.member("use_sliding_window", windows.tokens > 0);
  if (windows.tokens == 0) return;
  json.member("sliding_window", windows.tokens);
  json.member("max_window_layers", windows.first);
  if (windows.all_after_first()) return;
  json.begin_array("layer_types");
  for (const bool slides : windows.slides) {
    json.element(slides ? "sliding_attention" : "full_attention");
  }
  json.end_array();
}

void write_llama(JsonWriter& json, const ModelSpec& model) {
  json.member("hidden_size", model.hidden_size);
  json.member("intermediate_size", model.intermediate_size);
  json.member("num_hidden_layers", model.num_hidden_layers);
  json.member("num_attention_heads", model.num_attention_heads);
  json.member("num_key_value_heads", model.num_key_value_heads);
  json.member("head_dim", model.head_dim);
  json.member("max_position_embeddings", model.max_position_embeddings);
  json.member("hidden_act", activation_name(model.numerics.activation));
  json.member("rms_norm_eps", model.numerics.norm_epsilon);
  write_rope(json, model.numerics);
  const bool said = model.model_type == "llama" || model.model_type == "qwen3";
  if (said) json.member("attention_bias", has_parameter(model, "self_attn.q_proj.bias"));
  if (model.model_type == "llama") {
    json.member("mlp_bias", has_parameter(model, "mlp.down_proj.bias"));
  } else {
    write_windows(json, model);
  }
}

}  // namespace

std::string config_json(const ModelSpec& model, StoredType type) {
  JsonWriter json;
  json.begin_object();
  json.begin_array("architectures");
  json.element(architecture_of(model.model_type));
  json.end_array();
  json.member("model_type", model.model_type);
  if (model.model_type == "gpt2") {
    write_gpt2(json, model);
  } else {
    write_llama(json, model);
  }
  json.member("tie_word_embeddings", model.tie_word_embeddings);
  json.member("torch_dtype", type == StoredType::bf16 ? "bfloat16" : "float32");
  json.member("vocab_size", model.vocab_size);
  json.end_object();
  return json.text();
}

}  // namespace shardwise::exec
