#pragma once

#include <cstdint>
#include <string_view>

#include "planner/model/config_file.h"
#include "planner/model/transformer_config.h"

namespace shardwise {

// One reader a family: keys, defaults and names are those of transformers 4.57.6
// (models/FAMILY/configuration_FAMILY.py and modeling_FAMILY.py), unless said otherwise there.

TransformerConfig read_gpt2(ConfigFile& file);
TransformerConfig read_gpt_neox(ConfigFile& file);
TransformerConfig read_opt(ConfigFile& file);
TransformerConfig read_bloom(ConfigFile& file);
TransformerConfig read_falcon(ConfigFile& file);
TransformerConfig read_mpt(ConfigFile& file);
TransformerConfig read_bert(ConfigFile& file);
TransformerConfig read_t5(ConfigFile& file);
TransformerConfig read_llama(ConfigFile& file);
TransformerConfig read_mistral(ConfigFile& file);
TransformerConfig read_mixtral(ConfigFile& file);
TransformerConfig read_qwen2(ConfigFile& file);
TransformerConfig read_qwen3(ConfigFile& file);
TransformerConfig read_qwen2_moe(ConfigFile& file);
TransformerConfig read_qwen3_moe(ConfigFile& file);
TransformerConfig read_gemma(ConfigFile& file);
TransformerConfig read_gemma2(ConfigFile& file);
TransformerConfig read_gemma3_text(ConfigFile& file);
TransformerConfig read_phi3(ConfigFile& file);
TransformerConfig read_deepseek_v2(ConfigFile& file);
TransformerConfig read_deepseek_v3(ConfigFile& file);
TransformerConfig read_gpt_oss(ConfigFile& file);
/// Our own description, "model_type": "transformer" (docs/models.md). Unknown keys are errors.
TransformerConfig read_transformer(ConfigFile& file);

/// The exact function behind the name of an activation, as in transformers' ACT2FN.
ActivationFunction activation_function(std::string_view name);
/// What Llama's file and those of its kind say of norms, activation and rotary angles: rope_theta
/// and rope_scaling, or both in rope_parameters as transformers 5 writes them.
ModelNumerics llama_numerics(ConfigFile& file);

/// Sizes that a configuration class of the Llama kind takes when its file does not say.
struct DecoderDefaults {
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t num_hidden_layers;
  std::int64_t num_attention_heads;
  std::int64_t num_key_value_heads;  // 0 = num_attention_heads
  std::int64_t vocab_size;
  std::int64_t max_position_embeddings;
  bool tie_word_embeddings = false;
};

/// Reads the keys all families of the Llama kind share, "head_dim" aside.
TransformerConfig read_decoder(ConfigFile& file, const DecoderDefaults& defaults);

}  // namespace shardwise
