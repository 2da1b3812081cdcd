#include "planner/model/model_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/model/hf_config.h"
#include "planner/spec/json/reader.h"

namespace shardwise {
namespace {

TEST(ModelSources, NameEveryEntryOfTheCatalogueAndNoOther) {
  const Result<JsonValue> sources = read_json("configs/model_sources.json");
  ASSERT_TRUE(sources.ok());
  std::vector<std::string> named;
  for (const JsonMember& entry : sources->find("models")->members) {
    named.push_back(entry.key);
    EXPECT_NE(entry.value.find("source")->string, "") << entry.key;
    EXPECT_NE(entry.value.find("weights_license")->string, "") << entry.key;
  }
  EXPECT_EQ(named, catalogue_names("models"));
}

TEST(ModelSources, AreToldByTheLoadedModel) {
  EXPECT_EQ(load_model("llama-3.1-8b")->source, "huggingface.co/meta-llama/Llama-3.1-8B");
  EXPECT_EQ(load_model("configs/models/llama-3.1-8b.json")->source, "");
}

TEST(ModelSources, FindTheEntryOfARepository) {
  EXPECT_EQ(entry_published_as("meta-llama/Llama-3.1-8B"), "llama-3.1-8b");
  EXPECT_EQ(entry_published_as("qwen/qwen3-30b-a3b"), "qwen3-30b-a3b");
  EXPECT_EQ(entry_published_as("meta-llama/Llama-3.1-8C"), std::nullopt);
  EXPECT_EQ(entry_published_as("llama-3.1-8b"), std::nullopt);
  EXPECT_EQ(load_model("openai-community/gpt2")->name, "gpt2");
}

TEST(ModelSources, FindTheEntryOfAMirrorOrATunedVariant) {
  EXPECT_EQ(entry_published_as("NousResearch/Llama-2-7b-hf"), "llama-2-7b");
  EXPECT_EQ(entry_published_as("qwen/qwen2.5-7b-instruct"), "qwen2.5-7b");
  EXPECT_EQ(load_model("meta-llama/Meta-Llama-3.1-8B-Instruct")->name, "llama-3.1-8b");
}

// No repository is two entries': each resolves to the one that lists it.
TEST(ModelSources, ListEachRepositoryOnce) {
  const Result<JsonValue> sources = read_json("configs/model_sources.json");
  ASSERT_TRUE(sources.ok());
  for (const JsonMember& entry : sources->find("models")->members) {
    const JsonValue* also = entry.value.find("also");
    if (also == nullptr) continue;
    for (const JsonValue& name : also->elements) {
      EXPECT_EQ(entry_published_as(name.string), entry.key) << name.string;
    }
  }
}

}  // namespace
}  // namespace shardwise
