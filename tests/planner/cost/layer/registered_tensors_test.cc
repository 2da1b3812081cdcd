#include "planner/cost/layer/registered_tensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planner/cost/layer/engine_layer.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

using testing::ElementsAre;

/// Tensors of a kind of layer without what all names begin with: "self_attn.q_proj.weight".
std::vector<std::string> registered(const std::string& model, const std::string& kind,
                                    const std::string& prefix,
                                    const EngineProfile& engine = megatron_ddp()) {
  const ModelSpec spec = *load_model(model);
  const EngineLayer layer(*std::ranges::find(spec.kinds, kind, &LayerSpec::name), engine);
  std::vector<std::string> names;
  for (const RegisteredTensor& tensor : registered_tensors(*layer, JobSpec{}, engine)) {
    std::string joined;
    for (const std::int32_t p : tensor) {
      std::string name = layer->parameters[static_cast<std::size_t>(p)].name.substr(prefix.size());
      if (name.ends_with(".weight")) name.resize(name.size() - 7);
      joined += (joined.empty() ? "" : " ") + name;
    }
    names.push_back(joined);
  }
  return names;
}

TEST(RegisteredTensors, OfMegatronHaveTheProjectionBeforeTheNormAndOneMatrixForQkv) {
  EXPECT_THAT(
      registered("llama-3.1-8b", "block", "model.layers.{layer}."),
      ElementsAre("self_attn.o_proj", "input_layernorm",
                  "self_attn.q_proj self_attn.k_proj self_attn.v_proj", "post_attention_layernorm",
                  "mlp.gate_proj mlp.up_proj", "mlp.down_proj"));
}

TEST(RegisteredTensors, OfMegatronHaveOneBiasForQkv) {
  EXPECT_THAT(
      registered("qwen2.5-7b", "block", "model.layers.{layer}."),
      ElementsAre("self_attn.o_proj", "input_layernorm",
                  "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
                  "self_attn.q_proj.bias self_attn.k_proj.bias self_attn.v_proj.bias",
                  "post_attention_layernorm", "mlp.gate_proj mlp.up_proj", "mlp.down_proj"));
}

TEST(RegisteredTensors, OfMegatronHaveNormsOfHeadsBehindQkv) {
  EXPECT_THAT(registered("qwen3-8b", "block", "model.layers.{layer}."),
              ElementsAre("self_attn.o_proj", "input_layernorm",
                          "self_attn.q_proj self_attn.k_proj self_attn.v_proj", "self_attn.q_norm",
                          "self_attn.k_norm", "post_attention_layernorm",
                          "mlp.gate_proj mlp.up_proj", "mlp.down_proj"));
}

TEST(RegisteredTensors, OfMegatronKeepMatricesThatAreOneInTheCheckpoint) {
  EXPECT_THAT(registered("gpt2", "block", "transformer.h.{layer}."),
              ElementsAre("attn.c_proj", "attn.c_proj.bias", "ln_1", "ln_1.bias", "attn.c_attn",
                          "attn.c_attn.bias", "ln_2", "ln_2.bias", "mlp.c_fc", "mlp.c_fc.bias",
                          "mlp.c_proj", "mlp.c_proj.bias"));
}

TEST(RegisteredTensors, OfMegatronsLatentAttentionHaveItsNormFirst) {
  EXPECT_THAT(
      registered("deepseek-v2-lite", "block", "model.layers.{layer}."),
      ElementsAre("input_layernorm", "self_attn.o_proj", "self_attn.q_proj.layer_norm_weight",
                  "self_attn.q_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.kv_a_layernorm",
                  "self_attn.kv_b_proj", "post_attention_layernorm", "mlp.gate",
                  "mlp.experts.{expert}.gate_proj mlp.experts.{expert}.up_proj",
                  "mlp.experts.{expert}.down_proj",
                  "mlp.shared_experts.gate_proj mlp.shared_experts.up_proj",
                  "mlp.shared_experts.down_proj"));
}

TEST(EngineLayer, HasANormOfQueriesUnderMegatronAloneAndOnce) {
  const ModelSpec lite = *load_model("deepseek-v2-lite");
  const LayerSpec& block = *std::ranges::find(lite.kinds, "block", &LayerSpec::name);
  EXPECT_EQ(*EngineLayer(block, *find_engine("deepspeed")), block);
  const EngineLayer own(block, megatron_ddp());
  EXPECT_EQ(own->parameter_count(), block.parameter_count() + lite.hidden_size);
  EXPECT_EQ(*EngineLayer(*own, megatron_ddp()), *own);
  const ModelSpec v3 = *load_model("deepseek-v3");  // has q_lora_rank
  for (const LayerSpec& kind : v3.kinds) EXPECT_EQ(*EngineLayer(kind, megatron_ddp()), kind);
}

TEST(RegisteredTensors, OfMegatronsCrossAttentionHaveOneMatrixForKeysAndValues) {
  EXPECT_THAT(registered("t5-base", "block", "decoder.block.{layer}.layer."),
              ElementsAre("0.SelfAttention.o", "0.layer_norm",
                          "0.SelfAttention.q 0.SelfAttention.k 0.SelfAttention.v", "1.layer_norm",
                          "1.EncDecAttention.o", "1.EncDecAttention.q",
                          "1.EncDecAttention.k 1.EncDecAttention.v", "2.layer_norm",
                          "2.DenseReluDense.wi", "2.DenseReluDense.wo"));
}

TEST(RegisteredTensors, OfLinearsUnderAutocastHaveTheBiasFirst) {
  const std::vector<std::string> names =
      registered("qwen2.5-7b", "block", "model.layers.{layer}.", pytorch_ddp());  // in bf16
  EXPECT_THAT(std::vector<std::string>(names.begin() + 1, names.begin() + 8),
              ElementsAre("self_attn.q_proj.bias", "self_attn.q_proj", "self_attn.k_proj.bias",
                          "self_attn.k_proj", "self_attn.v_proj.bias", "self_attn.v_proj",
                          "self_attn.o_proj"));
}

TEST(RegisteredTensors, OfOtherEnginesAreTheCheckpoints) {
  const ModelSpec spec = *load_model("qwen2.5-7b");
  JobSpec job;
  job.precision = DType::fp32;
  for (const std::string& name : engine_names()) {
    if (name == "megatron_ddp") continue;
    const EngineProfile& engine = *find_engine(name);
    for (const LayerSpec& layer : spec.kinds) {
      const std::vector<RegisteredTensor> tensors = registered_tensors(layer, job, engine);
      ASSERT_EQ(tensors.size(), layer.parameters.size()) << engine.name;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        EXPECT_THAT(tensors[i], ElementsAre(static_cast<std::int32_t>(i))) << engine.name;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise
