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

}  // namespace
}  // namespace shardwise
