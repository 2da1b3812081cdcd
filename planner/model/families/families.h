#pragma once

#include <cstdint>
#include <string_view>

#include "planner/model/families/config_file.h"
#include "planner/model/families/transformer_config.h"

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
/// Norms, activation and rotary angles of Llama's file and those of its kind: rope_theta and
/// rope_scaling, or both in rope_parameters as transformers 5 writes them.
ModelNumerics llama_numerics(ConfigFile& file);
/// Reads whether the weights of the experts of a token add up to 1.
/// \param usual  of a file that does not say it: the defaults of the family's class
RouterNumerics router_numerics(ConfigFile& file, RouterNumerics usual);
/// Reads that, groups of experts and the factor of their weights.
RouterNumerics grouped_router_numerics(ConfigFile& file, RouterNumerics usual);

/// Stands for a key that a family's files may have without any meaning.
inline constexpr std::int64_t kNoSuchKey = -1;

/// Values that a configuration class of the Llama kind takes where its file has none. The first
/// five are needed in a file of their own (ConfigFile::needed); 0 = in every file.
struct DecoderDefaults {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t vocab_size = 0;
  std::int64_t num_key_value_heads = 0;  // 0 = num_attention_heads; kNoSuchKey = always so
  std::int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;
};

/// Reads the keys all families of the Llama kind share, "head_dim" and activation aside.
TransformerConfig read_decoder(ConfigFile& file, const DecoderDefaults& defaults);

/// Routed experts of a layer. The families write one number under three names, and transformers 5
/// saves Qwen3-MoE's under another than transformers 4 ("num_local_experts", "num_experts").
/// \param usual  the family's own name
std::int64_t needed_experts(ConfigFile& file, std::string_view usual);
/// Share of a head that is rotated: under `key`, or in "rope_parameters" as transformers 5 saves
/// it.
double rotated_share(ConfigFile& file, std::string_view key, double fallback);

}  // namespace shardwise
