// A plan's model has sizes and lists of layers; formulas read both.
#include "planner/spec/plan/model_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"

namespace shardwise {
namespace {

TEST(ModelLists, AgreeWithTheSizesOfEveryModelOfTheCatalogue) {
  int models = 0;
  for (const std::string& name : catalogue_names("models")) {
    const Result<ModelSpec> model = load_model(name);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(to_string(check_model_lists(*model)), to_string(Diagnostics{})) << name;
    ++models;
  }
  EXPECT_GT(models, 80);
}

TEST(ModelLists, NameTheFirstNumberThatContradictsASize) {
  using Edit = std::function<void(ModelSpec&)>;
  const std::pair<Edit, const char*> edits[] = {
      {[](ModelSpec& m) { m.vocab_size *= 2; }, "/model/kinds/0/parameters/0/shape/0"},
      {[](ModelSpec& m) { m.hidden_size /= 2; }, "/model/kinds/1/operations/"},
      {[](ModelSpec& m) { m.num_attention_heads *= 2; }, "/model/kinds/1/operations/"},
      {[](ModelSpec& m) { m.num_key_value_heads = 1; }, "/model/kinds/1/operations/"},
      {[](ModelSpec& m) { m.num_hidden_layers += 1; }, "/model/layers"},
      {[](ModelSpec& m) { m.layers.erase(m.layers.begin() + 1); }, "/model/layers"},
      {[](ModelSpec& m) { m.kinds[0].parameters[0].shape[0] += 1; },
       "/model/kinds/0/parameters/0/shape/0"},
      {[](ModelSpec& m) { m.kinds[1].parameters.clear(); }, "/model/kinds/1/parameters"},
      {[](ModelSpec& m) { m.kinds[1].parameters[1].shape[0] *= 2; }, "/model/kinds/1/parameters"}};
  for (const auto& [edit, path] : edits) {
    ModelSpec model = *load_model("llama-3.1-8b");
    edit(model);
    const Diagnostics problems = check_model_lists(model);
    ASSERT_EQ(problems.size(), 1U) << path;
    EXPECT_THAT(problems.front().path, testing::StartsWith(path));
  }
}

}  // namespace
}  // namespace shardwise
