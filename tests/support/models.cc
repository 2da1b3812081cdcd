#include "tests/support/models.h"

#include "planner/model/build.h"
#include "planner/spec/text/check.h"

namespace shardwise::test {
namespace {

ModelSpec built_model(const TransformerConfig& config, const std::string& name) {
  const Result<ModelSpec> model = make_model(config, name);
  SHARDWISE_CHECK(model.ok(), name);
  return *model;
}

TransformerConfig shape(std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                        std::int64_t heads, std::int64_t vocab) {
  TransformerConfig config;
  config.num_hidden_layers = layers;
  config.hidden_size = hidden;
  config.intermediate_size = intermediate;
  config.num_attention_heads = heads;
  config.vocab_size = vocab;
  config.max_position_embeddings = 4096;
  return config;
}

}  // namespace

ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                std::int64_t heads, std::int64_t kv_heads, std::int64_t vocab) {
  TransformerConfig config = shape(layers, hidden, intermediate, heads, vocab);
  config.num_key_value_heads = kv_heads;
  return built_model(config, "llama");
}

ModelSpec llama_3_1_8b() { return llama(32, 4096, 14336, 32, 8, 128256); }

ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  TransformerConfig config = shape(layers, hidden, 4 * hidden, heads, vocab);
  config.norm = NormKind::layernorm;
  config.norm_bias = true;
  config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
  config.gated_mlp = false;
  config.activation = Activation::gelu;
  config.position_embedding = PositionEmbedding::learned;
  config.tie_word_embeddings = true;
  config.names.position_embedding = "model.embed_positions";
  return built_model(config, "gpt");
}

ModelSpec mixture(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                  std::int64_t experts, std::int64_t experts_per_token, std::int64_t width,
                  std::int64_t shared) {
  TransformerConfig config = shape(layers, hidden, 4 * hidden, heads, 32000);
  MoeConfig moe;
  moe.num_experts = experts;
  moe.num_experts_per_tok = experts_per_token;
  moe.intermediate_size = width;
  moe.shared_intermediate_size = shared;
  config.moe = moe;
  return built_model(config, "mixture");
}

JobSpec open_job() {
  JobSpec job;
  job.loss = LossKernel::by_engine;
  return job;
}

}  // namespace shardwise::test
