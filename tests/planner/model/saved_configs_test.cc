// Configurations as save_pretrained of transformers 4 and 5 writes them, against the models that
// transformers builds of them (tests/golden/make_saved_configs.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

const JsonValue& saved_models(int version) {
  static std::map<int, Result<JsonValue>> files;
  const std::string path = "tests/golden/saved_configs_" + std::to_string(version) + ".json";
  const auto at = files.try_emplace(version, read_json(path)).first;
  EXPECT_TRUE(at->second.ok()) << path;
  return *at->second->find("models");
}

/// Without what differs between files of one model: its name and source.
ModelSpec bare(ModelSpec model) {
  model.name.clear();
  model.source.clear();
  // Positions without a table: transformers 5 does not save BLOOM's "seq_length", nor does 4 T5's.
  if (model.model_type == "bloom" || model.model_type == "t5") model.max_position_embeddings = 0;
  return model;
}

class SavedConfigs : public testing::TestWithParam<int> {};

TEST_P(SavedConfigs, HaveTheParametersThatTransformersBuilds) {
  for (const auto& [name, entry] : saved_models(GetParam()).members) {
    SCOPED_TRACE(name);
    const Result<ModelSpec> model = read_model(*entry.find("config"), "config.json", name);
    ASSERT_TRUE(model.ok()) << to_string(model.problems());
    EXPECT_EQ(count_parameters(*model).main_model(), entry.find("parameters")->integer);
  }
}

// A key that is renamed by the next version of transformers is an error or an assumption that is
// printed, or it says nothing about the model: never another model without a word.
TEST_P(SavedConfigs, LoseNoKeyInSilence) {
  for (const auto& [name, entry] : saved_models(GetParam()).members) {
    if (!name.starts_with("small ")) continue;
    const JsonValue& whole = *entry.find("config");
    const Result<ReadModel> model = read_model_and_keys(whole, "config.json", name);
    ASSERT_TRUE(model.ok());
    const bool nested = whole.find("text_config") != nullptr;
    const std::size_t keys =
        nested ? whole.find("text_config")->members.size() : whole.members.size();
    for (std::size_t i = 0; i < keys; ++i) {
      JsonValue less = whole;
      JsonValue* object = &less;
      if (nested) {
        for (JsonMember& member : less.members) {
          if (member.key == "text_config") object = &member.value;
        }
      }
      const std::string key = object->members[i].key;
      SCOPED_TRACE(name + ": " + key);
      object->members.erase(object->members.begin() + static_cast<std::ptrdiff_t>(i));
      const Result<ReadModel> other = read_model_and_keys(less, "config.json", name);
      if (!other || other->absent_keys != model->absent_keys) continue;
      EXPECT_EQ(bare(other->model), bare(model->model));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, SavedConfigs, testing::Values(4, 5),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

TEST(SavedConfigs, OfOneModelAreOneModelInBothVersions) {
  int compared = 0;
  for (const auto& [name, entry] : saved_models(4).members) {
    const JsonValue& other = *saved_models(5).find(name);
    // T5 is always tied in transformers 5, and DeepSeek-V2's default vocabulary is another.
    if (entry.find("parameters")->integer != other.find("parameters")->integer) continue;
    const Result<ModelSpec> four = read_model(*entry.find("config"), "4.json", name);
    const Result<ModelSpec> five = read_model(*other.find("config"), "5.json", name);
    ASSERT_TRUE(four.ok() && five.ok()) << name;
    // transformers 5 adds a layer of multi-token prediction to files that do not say how many.
    if (count_parameters(*four).mtp != count_parameters(*five).mtp) continue;
    EXPECT_EQ(bare(*four), bare(*five)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 160);
}

// Qwen3-Coder-480B was 386.5 B parameters when "num_experts" became "num_local_experts".
TEST(SavedConfigs, OfQwen3CoderKeepIts160Experts) {
  const JsonValue& entry = *saved_models(5).find("qwen3-coder-480b-a35b");
  EXPECT_NE(entry.find("config")->find("num_local_experts"), nullptr);
  const Result<ModelSpec> model = read_model(*entry.find("config"), "config.json", "coder");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->num_experts, 160);
  EXPECT_EQ(model->parameter_count(), 480'154'875'392);
}

TEST(SavedConfigs, WithoutAKeyThatDecidesASizeAreRefused) {
  const Result<JsonValue> json = parse_json(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 64, "vocab_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 4, "number_of_experts": 160,
          "num_experts_per_tok": 8, "moe_intermediate_size": 32})",
      "config.json");
  ASSERT_TRUE(json.ok());
  const Result<ModelSpec> model = read_model(*json, "config.json", "coder");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(to_string(model.problems()),
              HasSubstr("/num_experts: missing\n    add it: 1 to 65536; num_local_experts and "
                        "n_routed_experts are understood too"));
}

}  // namespace
}  // namespace shardwise
