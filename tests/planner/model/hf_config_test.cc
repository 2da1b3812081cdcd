// How a Hugging Face config.json is read: what is ignored, what is absent, what null means.
#include "planner/model/hf_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "planner/model/parameter_counts.h"

namespace shardwise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

ReadModel read(const std::string& text) {
  const Result<JsonValue> json = parse_json(text, "config.json");
  EXPECT_TRUE(json.ok()) << text;
  if (!json) return {};
  Result<ReadModel> model = read_model_and_keys(*json, "config.json", "mine");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : to_string(model.problems()));
  return model.ok() ? *model : ReadModel{};
}

ModelSpec parse(const std::string& text) { return read(text).model; }

std::vector<std::string> kinds(const ModelSpec& model) {
  std::vector<std::string> names;
  names.reserve(model.kinds.size());
  for (const LayerSpec& layer : model.kinds) names.push_back(layer.name);
  return names;
}

/// The file of a Llama of 32 heads with `more` in it.
std::string llama(const std::string& more) {
  return R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
             "num_attention_heads": 32, )" +
         more + "}";
}

TEST(HfConfig, RefusesAFileThatSaysOnlyItsFamily) {
  for (const std::string& model_type : known_model_types()) {
    const auto json = parse_json(fmt::format("{{\"model_type\": \"{}\"}}", model_type), "a.json");
    const Result<ModelSpec> model = read_model(*json, "a.json", "a");
    EXPECT_FALSE(model.ok()) << model_type;
  }
}

TEST(HfConfig, ListsWhatItTookForAbsentKeys) {
  const ReadModel model = read(llama(R"("num_hidden_layers": 2, "vocab_size": 96,
      "num_key_value_heads": 8, "max_position_embeddings": 64, "tie_word_embeddings": false,
      "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000, "mlp_bias": false)"));
  EXPECT_THAT(model.absent_keys, ElementsAre("head_dim derived", "attention_bias false"));
  EXPECT_THAT(load_model_and_keys("llama-2-7b")->absent_keys,
              testing::IsEmpty());  // checked, not assumed
}

// transformers saves a configuration inside another as its difference from the class's defaults.
// Source: tests/golden/parameter_counts.py.
TEST(HfConfig, TakesTheDefaultsOfTheClassInsideAnotherConfiguration) {
  const ReadModel model = read(R"({"model_type": "gemma3", "text_config": {}})");
  const Result<JsonValue> golden = read_json("tests/golden/parameter_counts.json");
  ASSERT_TRUE(golden.ok());
  EXPECT_EQ(count_parameters(model.model).main_model(),
            golden->find("defaults")->find("gemma3")->integer);
  EXPECT_THAT(model.absent_keys, Contains("hidden_size 2304"));
}

TEST(HfConfig, RefusesTwoNamesOfOneNumberThatDiffer) {
  const auto json = parse_json(R"({"model_type": "gpt2", "n_embd": 96, "hidden_size": 128,
      "n_layer": 2, "n_head": 4, "vocab_size": 96, "n_positions": 64})",
                               "a.json");
  const Result<ModelSpec> model = read_model(*json, "a.json", "a");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(to_string(model.problems()), HasSubstr("/hidden_size: 128, but n_embd is 96"));
}

TEST(HfConfig, IgnoresKeysOfOtherPurposes) {
  const ModelSpec model = parse(R"({
    "model_type": "llama", "num_hidden_layers": 2, "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "vocab_size": 96,
    "auto_map": {"AutoConfig": "configuration.Config"}, "bos_token_id": [1, 2], "rope_scaling": null,
    "quantization_config": {"quant_method": "fp8", "hidden_size": -1}, "transformers_version": 5,
    "rope_parameters": {"rope_theta": 1e6}, "my_note": "kept for later"})");
  EXPECT_EQ(model.num_hidden_layers, 2);
  EXPECT_EQ(model.hidden_size, 4096);
}

TEST(HfConfig, ReadsWholeNumbersHoweverWritten) {
  const ModelSpec model = parse(llama(R"("num_hidden_layers": 2.0, "vocab_size": 1e4)"));
  EXPECT_EQ(model.num_hidden_layers, 2);
  EXPECT_EQ(model.vocab_size, 10'000);
}

TEST(HfConfig, TakesNullAsNone) {
  const auto mistral = [](const std::string& more) {
    return parse(R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
                     "num_attention_heads": 32, "num_hidden_layers": 2, "vocab_size": 96)" +
                 more + "}");
  };
  EXPECT_THAT(kinds(mistral("")), Contains("sliding_4096_block"));
  EXPECT_THAT(kinds(mistral(R"(, "sliding_window": null, "head_dim": null)")),
              ElementsAre("embedding", "block", "head"));
  EXPECT_EQ(mistral(R"(, "num_key_value_heads": null)").num_key_value_heads, 32);
  const ModelSpec lite = parse(R"({"model_type": "deepseek_v2", "q_lora_rank": null,
      "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
      "num_hidden_layers": 2, "vocab_size": 96, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
      "v_head_dim": 16, "moe_intermediate_size": 32, "n_routed_experts": 8,
      "num_experts_per_tok": 6})");
  EXPECT_EQ(lite.kinds[1].operations[1].name, "self_attn.q_proj");
}

TEST(HfConfig, KnowsTheOtherNamesOfAKey) {
  EXPECT_EQ(parse(R"({"model_type": "gpt2", "hidden_size": 96, "num_hidden_layers": 3,
                      "n_head": 4, "vocab_size": 96, "n_positions": 64})")
                .num_hidden_layers,
            3);
  const ModelSpec falcon = parse(R"({"model_type": "RefinedWeb", "n_layer": 60, "n_head": 128,
      "n_head_kv": 8, "hidden_size": 8192, "vocab_size": 65024, "new_decoder_architecture": true})");
  EXPECT_EQ(falcon.num_key_value_heads, 8);
  EXPECT_EQ(falcon.parameter_count(), load_model("falcon-40b")->parameter_count());
}

TEST(HfConfig, LimitsAttentionToTheWindowOfALayer) {
  const ModelSpec qwen = parse(R"({"model_type": "qwen2", "num_hidden_layers": 4,
      "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 96,
      "num_key_value_heads": 2,
      "use_sliding_window": true, "sliding_window": 128, "max_window_layers": 3})");
  EXPECT_THAT(kinds(qwen), ElementsAre("embedding", "block", "sliding_128_block", "head"));
  EXPECT_THAT(qwen.layers, ElementsAre(0, 1, 1, 1, 2, 3));
  const ModelSpec listed = parse(R"({"model_type": "qwen3", "num_hidden_layers": 2,
      "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 96,
      "num_key_value_heads": 2,
      "use_sliding_window": true, "sliding_window": 64,
      "layer_types": ["sliding_attention", "full_attention"]})");
  EXPECT_THAT(listed.layers, ElementsAre(0, 1, 2, 3));
}

TEST(HfConfig, BuildsMptAsItsOwnersDo) {
  const ModelSpec mpt = parse(R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32,
      "n_layers": 32, "vocab_size": 50368, "max_seq_len": 2048, "no_bias": false,
      "attn_config": {"alibi": false}})");
  // mosaicml/llm-foundry@8c8dd48f7216:scripts/train/benchmarking/README.md, 7b at length 2048
  EXPECT_EQ(mpt.parameter_count(), 6'658'859'008);
}

TEST(HfConfig, CountsMultiTokenPredictionApart) {
  const Result<ModelSpec> model = load_model("deepseek-v3");
  const ParameterCounts counts = count_parameters(*model);
  EXPECT_EQ(counts.main_model(), 671'026'419'200);
  // 684,489,845,504 on the Hub without fp8 scales, less the main model and two copies of tables;
  // "11.5B unique" in deepseek-ai/DeepSeek-V3@9b4e9788:README_WEIGHTS.md.
  EXPECT_EQ(counts.mtp, 11'610'068'224);
  EXPECT_EQ(counts.untrained, (58 + 1) * 256);
}

TEST(HandDescription, NeedsSixSizes) {
  const ModelSpec model = parse(R"({"schema": "shardwise.model/1", "model_type": "transformer",
      "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
      "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096})");
  EXPECT_EQ(model.parameter_count(), load_model("llama-2-7b")->parameter_count());
  EXPECT_EQ(model.model_type, "transformer");
}

TEST(HandDescription, SaysAGptAndAMixtral) {
  const ModelSpec gpt = parse(R"({"schema": "shardwise.model/1", "model_type": "transformer",
      "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "vocab_size": 50257, "max_position_embeddings": 1024,
      "tie_word_embeddings": true, "norm": "layernorm", "bias": true, "gated_mlp": false,
      "activation": "gelu", "position_embedding": "learned", "fused_qkv": true})");
  EXPECT_EQ(gpt.parameter_count(), load_model("gpt2")->parameter_count());
  const ModelSpec mixtral = parse(R"({"schema": "shardwise.model/1", "model_type": "transformer",
      "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
      "max_position_embeddings": 32768, "num_experts": 8, "num_experts_per_tok": 2})");
  EXPECT_EQ(mixtral.parameter_count(), load_model("mixtral-8x7b")->parameter_count());
  EXPECT_EQ(count_parameters(mixtral).active, count_parameters(*load_model("mixtral-8x7b")).active);
}

TEST(HandDescription, SaysADeepseek) {
  const ModelSpec model = parse(R"({"schema": "shardwise.model/1", "model_type": "transformer",
      "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16,
      "intermediate_size": 10944, "vocab_size": 102400, "max_position_embeddings": 163840,
      "num_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
      "shared_intermediate_size": 2816, "first_dense_layers": 1, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})");
  EXPECT_EQ(model.parameter_count(), load_model("deepseek-v2-lite")->parameter_count());
}

TEST(KnownModelTypes, CoverThePublishedFamilies) {
  for (const char* family :
       {"gpt2",        "gpt_neox",  "opt",         "bloom",       "falcon",  "mpt",
        "bert",        "t5",        "llama",       "mistral",     "mixtral", "qwen2",
        "qwen3",       "qwen2_moe", "qwen3_moe",   "gemma",       "gemma2",  "gemma3",
        "gemma3_text", "phi3",      "deepseek_v2", "deepseek_v3", "gpt_oss", "transformer"}) {
    EXPECT_THAT(known_model_types(), Contains(family));
  }
  const Result<ModelSpec> unknown = load_model("tests/invalid/model/unknown_type.json");
  EXPECT_THAT(unknown.problems(), ElementsAre(Field(&Diagnostic::hint, HasSubstr("by hand"))));
}

// Every known key was compared with all of an unknown one.
TEST(ReadModel, TakesNoLongerForAKeyWithoutEnd) {
  std::string key;
  key.resize(10'000'000, 'k');
  const std::string text = R"({"model_type": "llama", ")" + key + R"(": 1, "hidden_siz": 64})";
  const std::clock_t begin = std::clock();
  const Result<JsonValue> json = parse_json(text, "long.json");
  ASSERT_TRUE(json);
  const Result<ModelSpec> model = read_model(*json, "long.json", "long");
  ASSERT_FALSE(model);
  EXPECT_THAT(to_string(model.problems()), testing::HasSubstr("did you mean hidden_size?"));
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 4);
}

}  // namespace
}  // namespace shardwise
