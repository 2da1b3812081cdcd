// The numbers of a model's formulas, which the executor needs and an estimate does not.
#include <gtest/gtest.h>

#include <string>

#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

/// Of a small model whose file says `text` besides its sizes.
ModelNumerics numerics_of(const std::string& text) {
  const std::string sizes = R"({"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 96,
      "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 96, "max_position_embeddings": 64, )";
  const Result<JsonValue> json = parse_json(sizes + text.substr(1), "config.json");
  EXPECT_TRUE(json.ok()) << text;
  if (!json) return {};
  const Result<ModelSpec> model = read_model(*json, "config.json", "mine");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : to_string(model.problems()));
  return model.ok() ? model->numerics : ModelNumerics{};
}

// Llama-3.1-8B's config.json as published.
TEST(Numerics, AreReadFromAPublishedLlama) {
  const Result<ModelSpec> model = load_model("llama-3.1-8b");
  ASSERT_TRUE(model.ok());
  const ModelNumerics expected = {.norm_epsilon = 1e-5,
                                  .activation = ActivationFunction::silu,
                                  .rope_theta = 500'000,
                                  .rope_scaling = RopeScaling::llama3,
                                  .rope_factor = 8,
                                  .rope_low_freq_factor = 1,
                                  .rope_high_freq_factor = 4,
                                  .rope_original_max_position_embeddings = 8192};
  EXPECT_EQ(model->numerics, expected);
}

TEST(Numerics, TakeTheFamilysDefaults) {
  const ModelNumerics llama = numerics_of(R"({"model_type": "llama"})");
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.rope_theta, 10'000);
  EXPECT_EQ(llama.rope_scaling, RopeScaling::none);
  const ModelNumerics gpt2 = numerics_of(R"({"model_type": "gpt2"})");
  EXPECT_EQ(gpt2.norm_epsilon, 1e-5);
  EXPECT_EQ(gpt2.activation, ActivationFunction::gelu_new);
}

TEST(Numerics, KnowTheExactActivation) {
  const auto of = [](const std::string& name) {
    return numerics_of(R"({"model_type": "gpt2", "activation_function": ")" + name + "\"}")
        .activation;
  };
  EXPECT_EQ(of("gelu"), ActivationFunction::gelu_erf);
  EXPECT_EQ(of("gelu_pytorch_tanh"), ActivationFunction::gelu_tanh);
  EXPECT_EQ(of("quick_gelu"), ActivationFunction::other);
}

TEST(Numerics, ReadRotaryParametersOfEitherSpelling) {
  const ModelNumerics linear = numerics_of(
      R"({"model_type": "qwen2", "rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 4}})");
  EXPECT_EQ(linear.rope_theta, 1e6);
  EXPECT_EQ(linear.rope_scaling, RopeScaling::linear);
  EXPECT_EQ(linear.rope_factor, 4);
  const ModelNumerics nested = numerics_of(
      R"({"model_type": "qwen3", "rope_parameters": {"rope_theta": 5e6, "rope_type": "default"}})");
  EXPECT_EQ(nested.rope_theta, 5e6);
  EXPECT_EQ(nested.rope_scaling, RopeScaling::none);
  const ModelNumerics yarn = numerics_of(
      R"({"model_type": "mistral", "rope_scaling": {"rope_type": "yarn", "factor": 4}})");
  EXPECT_EQ(yarn.rope_scaling, RopeScaling::other);
}

}  // namespace
}  // namespace shardwise
