#include "planner/spec/json/near_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/json/catalogue.h"

namespace shardwise {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> near(std::string_view word) {
  return near_models(word, catalogue_names("models"));
}

// Instruct variants have the architecture of the model that they were trained from.
TEST(NearModels, KnowVariantsOfTheCataloguesModels) {
  EXPECT_THAT(near("google/gemma-3-27b-it"), ElementsAre("gemma-3-27b"));
  EXPECT_THAT(near("gemma-3-27b-pt"), ElementsAre("gemma-3-27b"));
  EXPECT_THAT(near("meta-llama/Llama-3.1-8B-Instruct"), ElementsAre("llama-3.1-8b"));
  EXPECT_THAT(near("Llama-2-7b-chat-hf"), ElementsAre("llama-2-7b"));
  EXPECT_THAT(near("Qwen/Qwen3-8B-Base"), ElementsAre("qwen3-8b"));
}

TEST(NearModels, NameNoOtherArchitecture) {
  for (const char* const word :
       {"llama4", "llama-4-scout", "Llama-4-Maverick-17B-128E", "llama-9", "qwen4", "qwen-9-8b",
        "gemma-4", "gemma-4-27b-it", "gpt-4", "gpt5", "deepseek-r2", "deepseek-v4", "mistral-large",
        "phi-5", "falcon-3-7b", "grok-1", ""}) {
    EXPECT_THAT(near(word), IsEmpty()) << word;
  }
}

TEST(NearModels, FindSlipsAndSizesOfOneGeneration) {
  EXPECT_THAT(near("llama-3.1-8bb"), Contains("llama-3.1-8b"));
  EXPECT_THAT(near("lama-3.1-8b"), Contains("llama-3.1-8b"));
  EXPECT_THAT(near("llama3.1-80b"), Contains(StartsWith("llama-3.1-")));
  EXPECT_THAT(near("llama3.1-80b"), Each(StartsWith("llama-3.1-")));
  EXPECT_THAT(near("qwen3"), Each(StartsWith("qwen3-")));
  EXPECT_THAT(near("qwen3"), Not(IsEmpty()));
  EXPECT_THAT(near("llama"), Contains("llama-13b"));
  EXPECT_THAT(near("gpt2-medum"), Contains("gpt2-medium"));
}

// A model of the catalogue is near itself, in every spelling that people type.
TEST(NearModels, FindEveryModelByItsInstructVariant) {
  for (const std::string& name : catalogue_names("models")) {
    EXPECT_THAT(near("someone/" + name + "-Instruct"), ElementsAre(name));
  }
}

}  // namespace
}  // namespace shardwise
