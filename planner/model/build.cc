#include "planner/model/build.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/model/block_parts.h"
#include "planner/model/families/check_config.h"
#include "planner/model/outer_layers.h"

namespace shardwise {
namespace {

/// Puts layers of the same kind under one entry of ModelSpec::kinds.
class Sequence {
 public:
  explicit Sequence(ModelSpec& model) : model_(model) {}

  /// Appends a layer; `make` is called for the first of its kind.
  template <class Make>
  void append(const std::string& name, Make make) {
    const auto known = std::find_if(model_.kinds.begin(), model_.kinds.end(),
                                    [&](const LayerSpec& kind) { return kind.name == name; });
    const auto index = known - model_.kinds.begin();
    if (known == model_.kinds.end()) model_.kinds.push_back(make(name));
    model_.layers.push_back(static_cast<int>(index));
  }

 private:
  ModelSpec& model_;
};

/// For each layer whether it has routed experts.
std::vector<bool> layers_with_experts(const TransformerConfig& config) {
  const auto layers = static_cast<std::size_t>(config.num_hidden_layers);
  std::vector<bool> experts(layers, config.moe.has_value());
  if (!config.moe) return experts;
  for (const std::int64_t dense : config.moe->dense_layers) {
    experts[static_cast<std::size_t>(dense)] = false;
  }
  return experts;
}

void append_encoder(Sequence& sequence, const TransformerConfig& config) {
  for (std::int64_t i = 0; i < config.num_encoder_layers; ++i) {
    const bool first = i == 0;
    const bool last = i + 1 == config.num_encoder_layers;
    std::string name = "encoder";
    if (first) name += "_first";
    if (last) name += "_last";
    sequence.append(name, [&](const std::string& kind) {
      LayerBuilder layer(kind, LayerRole::encoder_block, config.names.encoder_block.prefix);
      const bool table = first && config.position_embedding == PositionEmbedding::relative;
      add_block(layer, config, config.names.encoder_block,
                {.attention = {.causal = false, .owns_table = table}});
      if (last) add_encoder_final_norm(layer, config);
      return layer.take();
    });
  }
}

void append_blocks(Sequence& sequence, const TransformerConfig& config) {
  const std::vector<bool> with_experts = layers_with_experts(config);
  for (std::size_t i = 0; i < with_experts.size(); ++i) {
    const bool experts = with_experts[i];
    const bool table = i == 0 && config.position_embedding == PositionEmbedding::relative;
    const std::int64_t window = config.windows.empty() ? 0 : config.windows[i];
    std::string name = config.moe && !experts ? "dense_block" : "block";
    if (window > 0) name.insert(0, "sliding_" + std::to_string(window) + "_");
    if (table) name.insert(0, "first_");
    sequence.append(name, [&](const std::string& kind) {
      LayerBuilder layer(kind, LayerRole::block, config.names.block.prefix);
      add_block(layer, config, config.names.block,
                {.attention = {.causal = config.causal, .window = window, .owns_table = table},
                 .experts = experts ? &*config.moe : nullptr,
                 .attends_to_encoder = config.num_encoder_layers > 0});
      return layer.take();
    });
  }
}

ModelSpec assemble(const TransformerConfig& config, const std::string& name) {
  ModelSpec model;
  model.name = name;
  model.model_type = config.model_type;
  model.hidden_size = config.hidden_size;
  model.num_hidden_layers = config.num_hidden_layers;
  model.num_attention_heads = config.num_attention_heads;
  model.num_key_value_heads = config.num_key_value_heads;
  model.head_dim = config.head_dim;
  model.intermediate_size = config.intermediate_size;
  if (config.moe) {
    model.moe_intermediate_size = config.moe->intermediate_size;
    model.num_experts = config.moe->num_experts;
    model.num_experts_per_tok = config.moe->num_experts_per_tok;
    model.router = config.moe->router;
  }
  model.vocab_size = config.vocab_size;
  model.max_position_embeddings = config.max_position_embeddings;
  model.tie_word_embeddings = config.tie_word_embeddings;
  model.numerics = config.numerics;
  if (config.activation == Activation::relu) {
    model.numerics.activation = ActivationFunction::relu;
  }

  Sequence sequence(model);
  sequence.append("embedding", [&](const std::string&) { return embedding_layer(config); });
  append_encoder(sequence, config);
  append_blocks(sequence, config);
  sequence.append("head", [&](const std::string&) { return head_layer(config); });
  for (std::int64_t i = 0; i < config.num_mtp_layers; ++i) {
    sequence.append("mtp", [&](const std::string&) { return mtp_layer(config); });
  }
  return model;
}

}  // namespace

Result<ModelSpec> make_model(const TransformerConfig& config, const std::string& name) {
  TransformerConfig resolved = config;
  Diagnostics problems;
  const ConfigVoice voice{
      .key_of = [](std::string_view field) { return std::string(field); },
      .usable = [](std::string_view) { return true; },
      .fail =
          [&](std::string_view field, std::string message, std::string hint) {
            Diagnostic problem;
            problem.file = name;
            problem.path = "/" + std::string(field);
            problem.message = std::move(message);
            problem.hint = std::move(hint);
            problems.push_back(std::move(problem));
          },
  };
  resolve_and_check(resolved, voice);
  if (!problems.empty()) return problems;
  return assemble(resolved, name);
}

}  // namespace shardwise
